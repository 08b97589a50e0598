/** What every server does with its connections when it stops. */
import type { Tester } from '../contract/http/service.ts'
import { connectRaw } from '../support/raw-connection.ts'
import type { ServingChild } from './child.ts'
import type { Template } from './template.ts'

/** Far more than a drain takes that waits for nothing, and far less than it may take, or a head has. */
const soonMs = 30_000

/** Linux keeps a silent connection from Bun for a second: Bun asks it to (TCP_DEFER_ACCEPT). */
const acceptedMs = 1_500

export async function drain(t: Tester, child: ServingChild, template: Template): Promise<void> {
  const place = await child.serve(template.copy(), {}, { drainTimeoutMs: 60_000 })
  const { hostname, port } = new URL(place.origin)
  const open = () => connectRaw(hostname, Number(port))

  const silent = await open()
  await new Promise((resolve) => setTimeout(resolve, acceptedMs))
  const idle = await open()
  idle.write('GET /service/health HTTP/1.1\r\nHost: a\r\n\r\n')
  t.equal((await idle.answer()).status, 200)
  const content = '{"partner":"demo"}'
  const busy = await open()
  busy.write(
    'POST /service/developer/verify-key HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
      `Authorization: Bearer ${template.filling.keys['demo full'].text}\r\n` +
      `Content-Length: ${content.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  t.equal((await busy.answer()).status, 100, 'a request is under way')

  const stopped = child.stop(place).then(() => 'stopped')
  t.equal(await idle.ended(), '', 'an idle connection is closed')
  busy.write(content)
  t.equal((await busy.answer()).status, 200, 'the request under way is answered')
  const late = new Promise((resolve) => setTimeout(resolve, soonMs, 'late').unref())
  t.equal(await Promise.race([stopped, late]), 'stopped', 'it does not wait for a silent connection')
  t.equal(await open().catch(({ code }) => code), 'ECONNREFUSED')
  for (const connection of [silent, idle, busy]) connection.destroy()
}

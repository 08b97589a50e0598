/** What every server does with its connections when it stops, whichever runtime it is on. */
import t from 'tap'
import { connectRaw } from '../support/raw-connection.ts'
import { startChild } from './child.ts'
import { absence, RUNTIMES } from './runtimes.ts'
import { makeTemplate } from './template.ts'

const template = await makeTemplate()
t.teardown(() => template.remove())

/** Far more than a drain takes that waits for nothing, and far less than it may take, or a head has. */
const soonMs = 30_000

/** For a second Linux keeps from Bun whoever says nothing: Bun asks it to (TCP_DEFER_ACCEPT). */
const acceptedMs = 1_500

t.jobs = RUNTIMES.length
for (const runtime of RUNTIMES) {
  t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false }, async (t) => {
    const child = startChild(runtime.command)
    t.teardown(() => child.end())
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
    t.equal(await idle.ended(), '', 'a connection that is done is closed')
    busy.write(content)
    t.equal((await busy.answer()).status, 200, 'what is under way is answered')
    const late = new Promise((resolve) => setTimeout(resolve, soonMs, 'late').unref())
    t.equal(
      await Promise.race([stopped, late]),
      'stopped',
      'nobody waits for a connection that asked for nothing',
    )
    await t.rejects(open(), { code: 'ECONNREFUSED' })
    for (const connection of [silent, idle, busy]) connection.destroy()
  })
}

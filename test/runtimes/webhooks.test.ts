/** Webhooks on Bun and Deno: the address is checked when the connection is made. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { documentOf, newFile, programOn, runProcess } from '../support/cli-program.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { isOlderNode, RUNTIMES } from './runtimes.ts'

const child = fileURLToPath(new URL('webhooks-child.ts', import.meta.url))
const store = `sqlite:${newFile()}`
const env = { PARTNER_API_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64') }
const { run, json } = programOn(store, { env })
const receiver = await startReceiver()
t.teardown(receiver.close)
await run('migrate')
const { data: { id } } = await json(
  'webhooks',
  'create',
  '--event',
  'key.issued',
  '--allow-private',
  '--url',
  receiver.url.replace('127.0.0.1', 'hook.example'),
)

for (const { name, command } of RUNTIMES.filter((runtime) => !isOlderNode(runtime))) {
  await t.test(name, async (t) => {
    const start = { command: [...command, child], env: { PARTNER_API_STORE: store, ...env } }
    const before = receiver.received.length
    const refused = await runProcess(['webhooks', 'test', id, '--json'], start)
    t.match(documentOf(refused).error, { code: 'not_delivered', detail: /private/, status: null })
    t.equal(receiver.received.length, before)
    const sent = await runProcess(['webhooks', 'test', id, '--allow-private', '--json'], start)
    t.match(documentOf(sent).data, { status: 204 }, sent.stderr)
  })
}

/** Connections to PostgreSQL on every runtime. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { serverFor } from '../postgres/fixtures.ts'
import { startGate } from '../postgres/network.ts'
import { within } from '../postgres/until.ts'
import { isOlderNode, RUNTIMES } from './runtimes.ts'

const server = await serverFor(t)
const url = await server.createDatabase()
const gate = await startGate(server.port)
t.teardown(() => gate.close())
const child = fileURLToPath(new URL('postgres-connections-child.ts', import.meta.url))

for (const { name, command: [program = '', ...flags] } of RUNTIMES.filter((each) => !isOlderNode(each))) {
  await t.test(`${name} sends statements, times out on an unresponsive server, and exits`, async (t) => {
    const running = spawn(program, [...flags, child, gate.url(url)], { stdio: ['pipe', 'pipe', 'inherit'] })
    t.teardown(() => running.kill('SIGKILL'))
    const ended = once(running, 'exit')
    const lines = createInterface({ input: running.stdout })[Symbol.asyncIterator]()
    const next = async () =>
      JSON.parse((await within(lines.next(), 'the output of the child')).value ?? 'null')
    t.strictSame(await next(), [true, '22012'])
    gate.cut()
    running.stdin.write('cut\n')
    const [code, tookMs] = await next()
    t.equal(code, 'unreachable')
    t.ok(tookMs < 30_000, `after ${tookMs} ms`)
    await gate.restore()
    running.stdin.end()
    t.strictSame(await next(), [['€', 2 ** 40, false]])
    t.equal((await within(ended, 'the child to end'))[0], 0)
  })
}

/** The connections on each runtime, in processes that have nothing else to do. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { startGate } from '../postgres/network.ts'
import { startServer } from '../postgres/server.ts'
import { within } from '../postgres/until.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())
const url = await server.createDatabase()
const child = fileURLToPath(new URL('postgres-connections-child.ts', import.meta.url))
const binaries = fileURLToPath(new URL('../node_modules/.bin/', import.meta.url))
const runtimes = {
  Node: [process.execPath, child],
  Bun: [`${binaries}bun`, child],
  Deno: [`${binaries}deno`, 'run', '-A', child],
}

/** Starts the child. Whatever a line of it says is JSON. */
function start(t: Test, [program = '', ...flags]: readonly string[], ...rest: readonly string[]) {
  const running = spawn(program, [...flags, ...rest], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => running.kill('SIGKILL'))
  const ended = once(running, 'exit')
  const lines = createInterface({ input: running.stdout })[Symbol.asyncIterator]()
  return {
    stdin: running.stdin,
    next: async () => JSON.parse((await within(lines.next(), 'the child to say something')).value ?? 'null'),
    ended: async () => (await within(ended, 'the child to end'))[0],
  }
}

for (const [name, command] of Object.entries(runtimes)) {
  await t.test(`${name} asks, and ends when nothing is asked any more`, async (t) => {
    const { next, ended } = start(t, command, url)
    t.strictSame(await next(), [true, '22012'])
    t.equal(await ended(), 0)
  })

  await t.test(`${name} gives up what is silent, and ends then`, async (t) => {
    const gate = await startGate(server.port)
    t.teardown(() => gate.close())
    const { stdin, next, ended } = start(t, command, gate.url(url), 'cut')
    t.strictSame(await next(), [true, '22012'])
    gate.cut()
    stdin.end('go on\n')
    const [code, tookMs] = await next()
    t.equal(code, 'unreachable')
    t.ok(tookMs < 30_000, `after ${tookMs} ms`)
    t.equal(await ended(), 0)
    await gate.restore()
  })
}

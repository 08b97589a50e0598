/** The same program on the other runtimes, and as npm runs it: it makes a store, serves it and drains. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { hasServer } from './postgres/binaries.ts'
import { startServer } from './postgres/server.ts'

const main = fileURLToPath(new URL('../cli/main.ts', import.meta.url))
const root = fileURLToPath(new URL('..', import.meta.url))
const binaries = fileURLToPath(new URL('./node_modules/.bin/', import.meta.url))
const runtimes = {
  Node: [process.execPath, main],
  Bun: [`${binaries}bun`, main],
  Deno: [`${binaries}deno`, 'run', '-A', main],
  // npm hands the signal to its shell, which has to have become the program.
  'npm run': ['npm', 'run', '-s', 'partner-api', '--'],
}

for (const [name, command] of Object.entries(runtimes)) {
  t.test(`${name} serves, and a signal ends it when it has drained`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'partner-api-runtime-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    await serves(t, command, `sqlite:${join(folder, 'store.db')}`)
  })
}

t.test('on PostgreSQL, too', { skip: hasServer() ?? false }, async (t) => {
  const database = await startServer()
  t.teardown(() => database.close())
  for (const name of ['Bun', 'Deno'] as const) {
    await t.test(name, async (t) => await serves(t, runtimes[name], await database.createDatabase()))
  }
})

async function serves(t: Test, [program = '', ...flags]: readonly string[], store: string): Promise<void> {
  const server = spawn(program, [...flags, 'serve', '--port', '0', '--log', 'off'], {
    cwd: root,
    env: { ...process.env, PARTNER_API_STORE: store },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => server.kill('SIGKILL'))
  let complaints = ''
  server.stderr.on('data', (chunk) => complaints += chunk)
  const [line] = await once(server.stdout, 'data')
  const base = String(line).trim().replace('listening on ', '')
  const health = await fetch(`${base}/service/health`)
  t.strictSame([health.status, await health.json()], [200, { data: { status: 'ok' } }])
  const refused = await fetch(`${base}/service/public/plans?partner=acme`)
  t.equal(refused.status, 401)
  t.equal((await refused.json()).code, 'key_missing')
  const closed = once(server, 'close')
  server.kill('SIGTERM')
  t.strictSame(await closed, [0, null], complaints)
}

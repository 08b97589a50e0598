/** The program on the other runtimes, and through npm: it creates a store, serves it and drains. */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import {
  documentOf,
  MAIN,
  programOn,
  runProcess,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { connectRaw } from '../support/raw-connection.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const binaries = fileURLToPath(new URL('../node_modules/.bin/', import.meta.url))
const runtimes = {
  Node: [process.execPath, MAIN],
  Bun: [`${binaries}bun`, MAIN],
  Deno: [`${binaries}deno`, 'run', '-A', MAIN],
  // npm signals its shell, which must have been replaced by the program (`exec`).
  'npm run': ['npm', 'run', '-s', 'partner-api', '--'],
}

const { 'npm run': _npm, ...programs } = runtimes

const folder = temporaryFolder()

// Most of the time is spent waiting, so all runtimes start at once.
t.test('every runtime serves, and drains on a signal', async (t) => {
  await Promise.all(
    Object.entries(runtimes).map(([name, command]) =>
      serves(t, name, command, `sqlite:${join(folder, `${name}.db`)}`)
    ),
  )
})

t.test("the audit log names the process's account on every runtime, whatever $USER says", async (t) => {
  await Promise.all(
    Object.entries(programs).map(async ([name, command]) => {
      const env = { PARTNER_API_STORE: `sqlite:${join(folder, `${name}-user.db`)}`, USER: 'mallory' }
      await runProcess(['partners', 'create', 'acme', '--name', 'Acme'], { command, env })
      const { data } = documentOf(await runProcess(['audit', 'list', '--json'], { command, env }))
      t.match(data, [{ type: 'partner.created', actor: userInfo().username }], name)
    }),
  )
})

t.test('every runtime ends on a signal despite open connections, and loses no counts', async (t) => {
  await Promise.all(
    Object.entries(programs).map(([name, command]) => endsWithAllOpen(t, name, command)),
  )
})

t.test('no runtime uses a proxy for this machine', async (t) => {
  const { store, issue, url } = await createStore()
  const { text } = await issue()
  await store.close()
  const served = await startServing(['serve', '--port', '0'], url)
  t.teardown(() => served.child.kill('SIGKILL'))
  const proxy = 'http://127.0.0.1:9'
  const env = { PARTNER_API_KEY: text, HTTP_PROXY: proxy, no_proxy: 'api.invalid' }
  for (const [name, command] of Object.entries(programs)) {
    const args = ['verify', '--url', served.url, '--partner', 'acme']
    t.match(await runProcess(args, { command, env }), { code: 0 }, name)
  }
})

t.test('Bun and Deno serve a PostgreSQL store', { skip: hasServer() ?? false }, async (t) => {
  const database = await startServer()
  t.teardown(() => database.close())
  for (const name of ['Bun', 'Deno'] as const) {
    await serves(t, name, runtimes[name], await database.createDatabase())
  }
})

const pipe = '[ -p "$0" ] || mkfifo "$0"; exec 3<>"$0" 4>"$0" 3>&-'

/** Runs a command whose standard output a shell redirects. Descriptor 4 is a pipe whose reader has gone. */
function redirected(command: readonly string[], args: string, to: string, file: string) {
  const env = { PARTNER_API_STORE: `sqlite:${file}` }
  return runProcess(args.split(' '), {
    env,
    command: ['sh', '-c', `${pipe}; "$@" ${to}`, `${file}.pipe`, ...command],
  })
}

t.test(
  'output that cannot be written is an error on every runtime',
  { skip: !existsSync('/dev/full') },
  async (t) => {
    await Promise.all(
      Object.entries(programs).map(async ([name, command]) => {
        const file = join(folder, `${name}-output.db`)
        const on = programOn(`sqlite:${file}`)
        await on.run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles')
        await on.run('store', 'backup', `${file}.backup`)
        const error = "error: Standard output can't be written: no space is left."
        const full: Readonly<Record<string, string | RegExp>> = {
          '--version': `${error}\n`,
          'keys --help': `${error}\n`,
          'partners list --json': `${error}\n`,
          'partners update acme --name Other': `${error} The change is made.\n`,
          [`store restore ${file}.backup --replace --json`]:
            /^Restored [^]*\nThe replaced store has 1 change since the backup: /,
        }
        for (const [args, stderr] of Object.entries(full)) {
          const ended = await redirected(command, args, '> /dev/full', file)
          t.match(ended, { code: 1, stdout: '', stderr }, `${name}: ${args}`)
        }
        const issue = `keys issue acme --name ${name}`
        const closed = 'it is closed. Nothing was changed. Use --out FILE.\n'
        t.match(await redirected(command, issue, '>&-', file), { code: 1, stderr: closed })
        const lost = await redirected(command, `${issue} --json`, '>&4', file)
        const { data: [key, ...more] } = await on.json('keys', 'list', 'acme')
        t.same([lost.code, more], [1, []], name)
        const remedy =
          `its reader has gone. Key ${key.id} was issued but is lost. To replace it: partner-api keys rotate`
        t.match(lost.stderr, remedy)
        const dry = await redirected(command, `keys rotate ${key.id} --dry-run`, '>&-', file)
        t.equal(dry.code, 0, `${name}: a dry run makes no key`)
        t.equal((await redirected(command, `keys rotate ${key.id} --overlap 0`, '> /dev/null', file)).code, 0)
      }),
    )
  },
)

t.test('Deno needs the documented permissions, and names one that is missing', async (t) => {
  const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8')
  const [, flags = ''] = /`deno run ((?:--allow-\w+\s+)+)npm:partner-api serve`/.exec(page) ?? []
  const permissions = flags.trim().split(/\s+/)
  const store = `sqlite:${join(folder, 'permissions.db')}`
  const command = (...allowed: string[]) => [runtimes.Deno[0]!, 'run', '--no-prompt', ...allowed, MAIN]
  await serves(t, 'Deno with permissions', command(...permissions), store)
  for (const missing of permissions) {
    const start = {
      command: command(...permissions.filter((each) => each !== missing)),
      env: { PARTNER_API_STORE: store },
    }
    const { code, stdout, stderr } = await runProcess(['serve', '--port', '0'], start)
    t.same([code, stdout], [1, ''], missing)
    t.match(stderr, new RegExp(`^error: Deno refused it: .*run again with the ${missing} flag\\.\n$`))
  }
})

async function serves(t: Test, name: string, command: readonly string[], store: string): Promise<void> {
  const args = ['serve', '--port', '0', '--log', 'off']
  const served = await startServing(args, store, { command, cwd: root })
  t.teardown(() => served.child.kill('SIGKILL'))
  const base = served.url
  const health = await fetch(`${base}/service/health`)
  t.strictSame([health.status, await health.json()], [200, { data: { status: 'ok' } }], name)
  t.equal(
    (await fetch(`${base}/`)).headers.get('content-type'),
    'text/html; charset=utf-8',
    'the reference page',
  )
  const refused = await fetch(`${base}/service/public/plans?partner=acme`)
  t.equal(refused.status, 401)
  t.equal((await refused.json()).code, 'key_missing')
  t.match(await stopServing(served), { code: 0, signal: null }, name)
}

async function endsWithAllOpen(t: Test, name: string, command: readonly string[]): Promise<void> {
  const { file, store, issue } = await createStore()
  const key = await issue()
  await store.close()
  const served = await startServing(['serve', '--port', '0'], `sqlite:${file}`, { command, cwd: root })
  t.teardown(() => served.child.kill('SIGKILL'))
  const port = Number(new URL(served.url).port)
  const path = '/service/developer/verify-key'
  const body = (...fields: string[]) =>
    ['POST ' + path + ' HTTP/1.1', 'Host: a', ...fields, 'Content-Length: 18', '', '{'].join('\r\n')
  const known = body('Content-Type: application/json', `Authorization: Bearer ${key.text}`)
  const page = 'GET /service/docs HTTP/1.1\r\nHost: a\r\n\r\n'
  for (const bytes of ['', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', page.repeat(1_000), body()]) {
    const socket = connect(port, '127.0.0.1').pause()
    socket.on('error', () => undefined)
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    socket.write(bytes)
  }
  const stalled = await connectRaw('127.0.0.1', port)
  t.teardown(() => stalled.destroy())
  stalled.write(known)
  await stalled.flushed()
  // Its response shows that the earlier bytes were read.
  t.equal((await fetch(`http://127.0.0.1:${port}/service/health`)).status, 200)
  const stopping = stopServing(served)
  t.equal((await stalled.answer()).status, 408, name)
  const ended = await stopping
  t.match(ended, { code: 0, signal: null }, name)
  t.notMatch(ended.stderr, 'write_failed')
  const again = await openSqliteStore(file)
  const today = new Date().toISOString().slice(0, 10)
  t.match(
    JSON.stringify(await again.summarise('acme', today, today)),
    /"requests":1\b/,
    `${name} counts the request`,
  )
  await again.close()
}

/** A signal ends the program at any moment of its start, also as process 1, which the kernel ends by no signal alone. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import {
  type Ended,
  ending,
  MAIN,
  newFile,
  noTerminal,
  preload,
  programOn,
  runOnTerminal,
  startProgram,
} from '../support/cli-program.ts'

const asFirst = ['unshare', '--map-root-user', '--pid', '--fork', '--kill-child', '--']
const canBeFirst = spawnSync(asFirst[0]!, [...asFirst.slice(1), 'true']).status === 0
const skip = canBeFirst ? false : 'no namespace of processes can be made here'
const bin = (name: string) => fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url))
const runtimes: Readonly<Record<string, readonly string[]>> = {
  Node: [process.execPath, MAIN],
  Bun: [bin('bun'), MAIN],
  Deno: [bin('deno'), 'run', '-A', MAIN],
}

/** Starts `serve` as process 1 of a namespace. */
async function startFirst(command: readonly string[], store: string) {
  const child = startProgram(['serve', '--port', '0'], {
    command: [...asFirst, ...command],
    env: { PARTNER_API_STORE: store },
  })
  const ended = ending(child)
  const children = () => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  await until(() => children() !== '', 'the process')
  const pid = Number(children())
  return {
    pid,
    /** Sends a signal. @returns The exit code. */
    async end(signal: NodeJS.Signals): Promise<number | null> {
      process.kill(pid, signal)
      return (await ended).code
    },
  }
}

/** Whether a process has a file open. */
const hasOpen = (pid: number, file: string) =>
  readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === file
    } catch {
      return false
    }
  })

test('a signal ends process 1 before the program is loaded', { skip }, async (t) => {
  const [flag = '', code = ''] = preload(`
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        if (url.endsWith('/cli/program.ts')) process.kill(process.pid, process.env.SIGNAL)
        return next(url, context)
      },
    })`).nodeArguments!
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const child = startProgram(['serve', '--port', '0'], {
      command: [...asFirst, process.execPath, flag, code, MAIN],
      env: { PARTNER_API_STORE: `sqlite:${newFile()}`, SIGNAL: signal },
    })
    t.teardown(() => child.kill('SIGKILL'))
    let ended: Ended | undefined
    void ending(child).then((result) => ended = result)
    await until(() => ended !== undefined, 'it to end')
    // It drains if the server has its own handlers by then.
    t.ok([0, 128 + constants.signals[signal]].includes(ended!.code!), signal)
  }
})

for (const [name, command] of Object.entries(runtimes)) {
  test(
    `${name}: a signal ends process 1 while another process has the SQLite file locked`,
    { skip },
    async (t) => {
      const file = newFile()
      const other = new DatabaseSync(file)
      other.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
      const { pid, end } = await startFirst(command, `sqlite:${file}`)
      await until(() => hasOpen(pid, `${file}-wal`), 'it to open the store')
      t.equal(await end('SIGTERM'), 143)
      other.exec('COMMIT')
      other.close()
      t.equal((await programOn(`sqlite:${file}`).run('migrate')).code, 0)
    },
  )
}

test(
  'a signal ends process 1 during a migration of PostgreSQL',
  { skip: skip || (hasServer() ?? false) },
  async (t) => {
    const server = await startServer()
    t.teardown(() => server.close())
    const url = await server.createDatabase()
    const other = postgres(url, { max: 1 })
    t.teardown(() => other.end())
    const client = await other.reserve()
    await client`BEGIN`
    await client`CREATE SCHEMA partner_api`
    const { end } = await startFirst(runtimes['Node']!, url)
    const waiting = async () => {
      const [row] = await client`SELECT count(*) AS count FROM pg_locks WHERE NOT granted`
      return Number(row!['count']) > 0
    }
    await until(waiting, 'the migration to wait')
    t.equal(await end('SIGTERM'), 143)
    await client`ROLLBACK`
    client.release()
    t.match(await programOn(url).run('migrate'), { code: 0 })
    t.match(await programOn(url).run('migrate', '--status'), { code: 0, stdout: /pending: +nothing/ })
  },
)

test('as process 1, serve drains on the first signal and ends at once on the second', { skip }, async (t) => {
  const child = startProgram(['serve', '--port', '0', '--drain-delay', '3600'], {
    command: [...asFirst, process.execPath, MAIN],
    env: { PARTNER_API_STORE: `sqlite:${newFile()}` },
  })
  const ended = ending(child)
  await once(child.stdout, 'data')
  const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'))
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.kill(pid, signal)
  // The order of signals that arrive together is the kernel's.
  t.ok([130, 143].includes((await ended).code!))
})

test('as process 1, a prompt that is interrupted is no success', { skip: skip || noTerminal }, async (t) => {
  const words = [
    ...asFirst,
    process.execPath,
    MAIN,
    'verify',
    '--url',
    'http://127.0.0.1:9',
    '--partner',
    'acme',
  ]
  const command = words.map((word) => `'${word}'`).join(' ')
  t.match(await runOnTerminal(`${command}; echo "exit $?"`, {}, 'not shown', '\u0003'), 'exit 130')
})

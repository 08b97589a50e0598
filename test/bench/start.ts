/** How long the program as installed takes to start: to print its version, and to its first response. Starts alternate. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { alternate, figure, median, type Row } from './report.ts'
import { CACHED_TARGET, fill, issueKey } from './tenant.ts'

const runFile = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const binary = (name: string): string => join(root, 'test/node_modules/.bin', name)

/** Builds what npm would install, outside of the checkout. */
export async function run(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    const dist = join(directory, 'dist')
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    await runFile(process.execPath, [compiler, '-p', join(root, 'cli'), '--outDir', dist], { cwd: root })
    for (const path of ['node_modules', 'package.json']) {
      await symlink(join(root, path), join(directory, path))
    }
    const installed = join(dist, 'cli/main.js')
    return [...await timeVersion(installed, directory), ...await timeFirstAnswer(installed, directory)]
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** Against a program that does nothing. It is CommonJS, which starts faster than a module. */
async function timeVersion(installed: string, directory: string): Promise<Row[]> {
  const empty = join(directory, 'empty.cjs')
  await writeFile(empty, '')
  const start = (...words: string[]) => () => runFile(process.execPath, words)
  const [nothing, ours, source] = await timeStarts(20, [
    start(empty),
    start(installed, '--version'),
    start(join(root, 'cli/main.ts'), '--version'),
  ]) as [number, number, number]
  const against = `empty node ${figure(nothing, 'ms')}`
  const row = (what: string, milliseconds: number): Row => ({
    part: 'start',
    what,
    ours: figure(milliseconds, 'ms'),
    against,
    ratio: `+${(milliseconds - nothing).toFixed(1)} ms`,
  })
  return [
    { ...row('partner-api --version, as installed', ours), target: '≤ +15 ms', met: ours - nothing <= 15 },
    row('node cli/main.ts --version', source),
  ]
}

/** How a runtime is started, and the milliseconds in which it should respond. */
const runtimes: readonly (readonly [name: string, command: readonly string[], target: number])[] = [
  ['Node', [process.execPath], 150],
  ['Bun', [binary('bun')], 80],
  ['Deno', [binary('deno'), 'run', '-A', '-q', '--node-modules-dir=manual'], 150],
]

/** To the response to a request with a key, on a SQLite file. */
async function timeFirstAnswer(installed: string, directory: string): Promise<Row[]> {
  const file = join(directory, 'store.db')
  const store = await openSqliteStore(file)
  await fill(store, 500)
  const key = await issueKey(store)
  await store.close()
  const words = [installed, '--store', `sqlite:${file}`, 'serve', '--port', '0', '--log', 'off']
  const taken = await timeStarts(
    15,
    runtimes.map(([, command]) => () => serveAndAsk([...command, ...words], key)),
  )
  return runtimes.map(([name, , target], index) => ({
    part: 'start',
    what: `${name}: serve, to the first answered request`,
    ours: figure(taken[index]!, 'ms'),
    target: `≤ ${target} ms`,
    met: taken[index]! <= target,
  }))
}

/** @returns The median milliseconds of each. The first two starts, which fill the file cache, are not counted. */
async function timeStarts(count: number, starts: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  const taken = await alternate(
    count,
    2,
    starts.map((start) => async () => {
      const startedAt = performance.now()
      await start()
      return performance.now() - startedAt
    }),
  )
  return taken.map(median)
}

async function serveAndAsk([command = '', ...words]: readonly string[], key: string): Promise<void> {
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  try {
    const [line] = await once(child.stdout, 'data')
    const url = String(line).trim().replace('listening on ', '') + CACHED_TARGET
    const sent = request(url, { headers: { authorization: `Bearer ${key}` }, agent: false }).end()
    const [response] = await once(sent, 'response')
    await once(response.resume(), 'end')
    if (response.statusCode !== 200) throw new Error(`${command} answered with ${response.statusCode}.`)
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

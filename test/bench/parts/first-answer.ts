/**
 * How long the program takes, as installed, from its start to the first answer to a request with a key, on a SQLite file.
 * Starts alternate.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import { fill, issueKey } from '../data/tenant.ts'
import { figure, median } from '../figures.ts'
import type { Row } from '../report.ts'

const runFile = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const binary = (name: string): string => join(root, 'test/node_modules/.bin', name)
const starts = 15
const path = '/service/public/profiles?partner=acme'

/** How a runtime is started, and the milliseconds in which it is to answer. */
const runtimes: Readonly<Record<string, readonly [command: readonly string[], target: number]>> = {
  Node: [[process.execPath], 150],
  Bun: [[binary('bun')], 80],
  Deno: [[binary('deno'), 'run', '-A', '-q', '--node-modules-dir=manual'], 150],
}

export async function run(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    return await measure(directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function measure(directory: string): Promise<Row[]> {
  const file = join(directory, 'store.db')
  const store = await openSqliteStore(file)
  await fill(store, 500)
  const key = await issueKey(store)
  await store.close()
  const program = await build(directory)
  const words = [program, '--store', `sqlite:${file}`, 'serve', '--port', '0', '--log', 'off']
  const taken = new Map(Object.keys(runtimes).map((name): [string, number[]] => [name, []]))
  for (let start = 0; start < starts + 2; start++) {
    for (const [name, [command]] of Object.entries(runtimes)) {
      const milliseconds = await time([...command, ...words], key)
      // The first two of each fill the file cache.
      if (start >= 2) taken.get(name)!.push(milliseconds)
    }
  }
  return Object.entries(runtimes).map(([name, [, target]]) => {
    const milliseconds = median(taken.get(name)!)
    return {
      part: 'first-answer',
      what: `${name}: serve, to the first answered request`,
      ours: figure(milliseconds, 'ms'),
      target: `≤ ${target} ms`,
      met: milliseconds <= target,
    }
  })
}

/** Builds what npm would install, beside the tree and not in it. @returns The program. */
async function build(directory: string): Promise<string> {
  const compiler = join(root, 'test/node_modules/typescript/bin/tsc')
  const dist = join(directory, 'dist')
  await runFile(process.execPath, [compiler, '-p', join(root, 'cli'), '--outDir', dist], { cwd: root })
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  await symlink(join(root, 'package.json'), join(directory, 'package.json'))
  return join(dist, 'cli/main.js')
}

async function time([command = '', ...words]: readonly string[], key: string): Promise<number> {
  const startedAt = performance.now()
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  try {
    const [line] = await once(child.stdout, 'data')
    const status = await ask(String(line).trim().replace('listening on ', ''), key)
    if (status !== 200) throw new Error(`${command} answered with ${status}.`)
    return performance.now() - startedAt
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

function ask(url: string, key: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { headers: { authorization: `Bearer ${key}` }, agent: false })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    sent.end()
  })
}

/**
 * Compares the start of executables with that of the same runtimes on sources: `node test/package/executable-start.ts 15`.
 * Prints medians and minima of alternating runs, and exits 1 if an executable needs more than 1.3 times as long.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { buildExecutable, withBun } from './executable.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rounds = Number(process.argv[2] ?? 15)
const folder = mkdtempSync(join(tmpdir(), 'partner-api-start-'))
const runtimes = { node: process.execPath, bun: join(root, 'test/node_modules/.bin/bun') } as const
const store = ['--store', `sqlite:${join(folder, 'store.db')}`]

/** Milliseconds until a command has ended. */
function end([program = '', ...words]: readonly string[]): number {
  const start = performance.now()
  if (spawnSync(program, words, { stdio: 'ignore' }).status !== 0) {
    throw new Error(`${program} ${words} failed`)
  }
  return performance.now() - start
}

/** Milliseconds until a server has answered a request. */
async function answer([program = '', ...words]: readonly string[]): Promise<number> {
  const start = performance.now()
  const child: ChildProcess = spawn(program, words, { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = await once(child.stdout!, 'data')
  const { status } = await fetch(`${String(line).trim().replace('listening on ', '')}/service/health`)
  const ms = performance.now() - start
  child.kill()
  await once(child, 'close')
  if (status !== 200) throw new Error(`${program} answered with ${status}`)
  return ms
}

const cases: Readonly<Record<string, readonly [typeof answer | typeof end, readonly string[]]>> = {
  '--version': [end, ['--version']],
  'partners list': [end, [...store, 'partners', 'list']],
  'serve, until it answers': [answer, [...store, 'serve', '--port', '0']],
}

try {
  end([process.execPath, join(root, 'cli/main.ts'), ...store, 'demo', '--no-serve'])
  for (const runtime of ['node', 'bun'] as const) {
    const file = join(folder, runtime)
    await withBun((bun) => buildExecutable(runtime, file, bun))
    console.log(`${runtime}: ${(statSync(file).size / 2 ** 20).toFixed(0)} MiB`)
    for (const [name, [measure, words]] of Object.entries(cases)) {
      const times = { sources: [] as number[], executable: [] as number[] }
      for (let round = 0; round <= rounds; round++) {
        const sources = await measure([runtimes[runtime], join(root, 'cli/main.ts'), ...words])
        const executable = await measure([file, ...words])
        // The first round fills caches of compiled code, and of the file system.
        if (round === 0) continue
        times.sources.push(sources)
        times.executable.push(executable)
      }
      const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[all.length >> 1]!
      const [before, after] = [median(times.sources), median(times.executable)]
      const least = `least ${Math.min(...times.sources).toFixed(0)} and ${
        Math.min(...times.executable).toFixed(0)
      } ms`
      const isKept = after <= 1.3 * before
      console.log(
        `  ${isKept ? 'kept  ' : 'BROKEN'}  ${name}: sources ${before.toFixed(0)} ms, executable ${
          after.toFixed(0)
        } ms, ` +
          `${(after / before).toFixed(2)} × (${least})`,
      )
      if (!isKept) process.exitCode = 1
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}

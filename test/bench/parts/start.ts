/**
 * How long the program takes to say its version, against a program that does nothing. Starts alternate. The empty
 * program is CommonJS, which starts faster than a module.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { figure, median } from '../figures.ts'
import type { Row } from '../report.ts'

const runFile = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const starts = 20

export async function run(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    return await measure(directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function measure(directory: string): Promise<Row[]> {
  const empty = join(directory, 'empty.cjs')
  await writeFile(empty, '')
  const built = await build(directory)
  const programs = [[empty], [built, '--version'], [join(root, 'cli/main.ts'), '--version']]
  const taken = programs.map((): number[] => [])
  for (let start = 0; start < starts + 2; start++) {
    for (const [index, words] of programs.entries()) {
      const milliseconds = await time(words)
      // The first two of each fill the file cache.
      if (start >= 2) taken[index]!.push(milliseconds)
    }
  }
  const [nothing, ours, source] = taken.map(median) as [number, number, number]
  const against = `empty node ${figure(nothing, 'ms')}`
  return [
    {
      part: 'start',
      what: 'partner-api --version, as installed',
      ours: figure(ours, 'ms'),
      against,
      ratio: `+${(ours - nothing).toFixed(1)} ms`,
      target: '≤ +15 ms',
      met: ours - nothing <= 15,
    },
    {
      part: 'start',
      what: 'node cli/main.ts --version',
      ours: figure(source, 'ms'),
      against,
      ratio: `+${(source - nothing).toFixed(1)} ms`,
    },
  ]
}

/** Builds what npm would install, beside the tree and not in it. @returns The program. */
async function build(directory: string): Promise<string> {
  const compiler = join(root, 'test/node_modules/typescript/bin/tsc')
  const dist = join(directory, 'dist')
  await runFile(process.execPath, [compiler, '-p', join(root, 'cli'), '--outDir', dist], { cwd: root })
  await writeFile(join(directory, 'package.json'), '{"type":"module"}')
  return join(dist, 'cli/main.js')
}

async function time(words: readonly string[]): Promise<number> {
  const startedAt = performance.now()
  await runFile(process.execPath, words)
  return performance.now() - startedAt
}

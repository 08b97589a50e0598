import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { formatContentLine } from '../../../core/content/lines.ts'
import type { ContentKind } from '../../../core/ports/content.ts'
import { INDUSTRIES, PARTNER, profiles } from '../data/profiles.ts'
import { median } from '../figures.ts'

const runFile = promisify(execFile)
const program = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))

/** Seconds that `content import` of so many profiles takes an operator, the start of the program included. */
export async function timeImport(count: number): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    const industryFile = join(directory, 'industries.jsonl')
    const profileFile = join(directory, 'profiles.jsonl')
    await writeFile(industryFile, INDUSTRIES.map((record) => line('industries', record)).join(''))
    await writeFile(profileFile, Array.from(profiles(count), (record) => line('profiles', record)).join(''))
    const times: number[] = []
    for (const attempt of [1, 2, 3]) {
      const store = ['--store', `sqlite:${join(directory, `${attempt}.db`)}`]
      await runProgram([...store, 'partners', 'create', PARTNER, '--name', 'Acme'])
      await runProgram([...store, 'content', 'import', 'industries', industryFile])
      const startedAt = performance.now()
      await runProgram([...store, 'content', 'import', 'profiles', profileFile])
      times.push((performance.now() - startedAt) / 1000)
    }
    return median(times)
  } finally {
    await rm(directory, { recursive: true })
  }
}

function line<K extends ContentKind>(kind: K, record: Parameters<typeof formatContentLine<K>>[1]): string {
  return `${formatContentLine(kind, record)}\n`
}

async function runProgram(words: readonly string[]): Promise<void> {
  await runFile(process.execPath, [program, ...words])
}

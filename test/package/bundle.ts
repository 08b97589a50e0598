/** Bundle sizes of programs: bytes, minified and gzipped. */
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { binary, run } from './installed.ts'

/** Bytes after `gzip -9`. */
export interface Weight {
  /** The files loaded at the start: the program and its static imports. */
  readonly start: number
  /** All files, including dynamic imports. */
  readonly whole: number
  /** The program's own file, and what it imports at once. */
  readonly code: string
}

/** Bundles a program for the web, where nothing of a runtime is there for nothing. */
export async function weigh(program: string, project: string): Promise<Weight> {
  const folder = mkdtempSync(join(project, 'bundle-'))
  writeFileSync(join(folder, 'program.js'), program)
  const words = [
    '--splitting',
    '--minify',
    '--target=browser',
    '--format=esm',
    '--outdir=out',
    '--external',
    'node:*',
  ]
  await run(binary('bun'), ['build', 'program.js', ...words], folder)
  const out = join(folder, 'out')
  const code = new Map(readdirSync(out).map((name) => [name, readFileSync(join(out, name), 'utf8')]))
  const first = reach('program.js', code)
  const bytes = (names: Iterable<string>): number =>
    [...names].reduce((sum, name) => sum + gzipSync(code.get(name)!, { level: 9 }).length, 0)
  return {
    start: bytes(first),
    whole: bytes(code.keys()),
    code: [...first].map((name) => code.get(name)).join(''),
  }
}

/** The chunks that one imports, and those import in turn; not what is imported by a call. */
function reach(from: string, code: ReadonlyMap<string, string>, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(from)) return seen
  seen.add(from)
  for (const [, name = ''] of code.get(from)!.matchAll(/(?:from|import)"\.\/([^"]+)"/g)) {
    reach(name, code, seen)
  }
  return seen
}

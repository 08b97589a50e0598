/**
 * Builds the program as one file that needs no runtime beside it: `npm run executable -- node|bun [FILE]`. The runtime that
 * `npm ci` and the test tools installed is inside.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bun = join(root, 'test/node_modules/.bin/bun')

/** What a bundler cannot follow, and what replaces it. */
const replacements: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  'cli/serve/demo.ts': [
    ['readLines(file, io.stdin)', "readLines('-', Readable.from([Buffer.from(content_[kind]!)]))"],
    ['fileURLToPath(new URL(`../../fixtures/content/${kind}.jsonl`, import.meta.url))', '`${kind}.jsonl`'],
  ],
}

/** @returns The path of the entry in a copy of the sources that contains the demo content. */
function prepareSources(folder: string): string {
  for (const name of ['core', 'adapters', 'cli']) {
    cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const content = readdirSync(join(root, 'fixtures/content'))
    .map((file) => [file.replace(/\.jsonl$/, ''), readFileSync(join(root, 'fixtures/content', file), 'utf8')])
  const additions: Readonly<Record<string, string>> = {
    'cli/serve/demo.ts': `import { Readable } from 'node:stream'
      const content_: Record<string, string> = ${JSON.stringify(Object.fromEntries(content))}`,
  }
  for (const [file, edits] of Object.entries(replacements)) {
    let text = readFileSync(join(root, file), 'utf8')
    for (const [from, to] of edits) {
      if (!text.includes(from)) throw new Error(`${file} does not contain ${from}`)
      text = text.replace(from, () => to)
    }
    writeFileSync(join(folder, file), `${text}\n${additions[file]}\n`)
  }
  return join(folder, 'cli/main.ts')
}

/** Builds an executable for this machine. @param runtime What runs it. */
export function buildExecutable(runtime: 'node' | 'bun', file: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-executable-'))
  const run = (program: string, ...words: string[]) =>
    execFileSync(program, words, { cwd: folder, stdio: 'pipe' })
  try {
    const entry = prepareSources(folder)
    const minify = ['--minify-syntax', '--minify-whitespace', '--format=esm']
    if (runtime === 'bun') {
      run(bun, 'build', entry, '--compile', '--bytecode', ...minify, `--outfile=${file}`)
      return
    }
    const main = join(folder, 'main.mjs')
    run(bun, 'build', entry, '--target=node', ...minify, `--outfile=${main}`)
    const config = {
      main,
      mainFormat: 'module',
      output: file,
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
    }
    writeFileSync(join(folder, 'sea.json'), JSON.stringify(config))
    run(process.execPath, '--build-sea', 'sea.json')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (import.meta.main) {
  const [runtime = '', given] = process.argv.slice(2)
  if (runtime !== 'node' && runtime !== 'bun') {
    console.error('usage: npm run executable -- node|bun [FILE]')
    process.exit(2)
  }
  const file = resolve(given ?? `dist/partner-api-${runtime}`)
  mkdirSync(resolve(file, '..'), { recursive: true })
  buildExecutable(runtime, file)
  console.log(`${file} has ${(statSync(file).size / 2 ** 20).toFixed(0)} MiB.`)
}

/**
 * Builds the program as one file that needs no runtime beside it: `npm run executable -- node|bun [FILE]`. The Node that
 * runs this is inside, or the Bun of the test tools.
 */
import { execFile, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { dependencies } from './tarballs.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** What a bundler cannot follow, and what replaces it. */
const replacements: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  'cli/serve/demo.ts': [
    ['readLines(file, io.stdin)', "readLines('-', Readable.from([Buffer.from(content_[kind]!)]))"],
    ['fileURLToPath(new URL(`../../fixtures/content/${kind}.jsonl`, import.meta.url))', '`${kind}.jsonl`'],
  ],
}

/** Copies the sources, with the demo content in them. */
function prepareSources(root: string, folder: string): void {
  for (const name of ['core', 'adapters', 'cli']) {
    cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  // Copies, because Bun keeps the paths of modules: those in the folder are the same on every machine.
  for (const [path] of dependencies(root)) cpSync(join(root, path), join(folder, path), { recursive: true })
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
}

/**
 * Calls `use` with the path of the Bun of the test tools. If they are not installed, the same version of Bun is there for
 * the time of the call: it is as large as all that `npm ci` installs.
 */
export async function withBun<T>(use: (bun: string) => Promise<T>): Promise<T> {
  const installed = join(project, 'test/node_modules/.bin/bun')
  if (existsSync(installed)) return await use(installed)
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-bun-'))
  try {
    const { packages } = JSON.parse(readFileSync(join(project, 'test/package-lock.json'), 'utf8'))
    const dependencies = { bun: packages['node_modules/bun'].version }
    const locked = Object.entries(packages).filter(([path]) => /^node_modules\/(?:bun$|@oven\/)/.test(path))
    const lock = { lockfileVersion: 3, packages: { '': { dependencies }, ...Object.fromEntries(locked) } }
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies }))
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
    // npm is a script for cmd.exe on Windows.
    const words = ['ci', '--ignore-scripts', '--loglevel=error']
    const npm = spawnSync('npm', words, {
      cwd: folder,
      encoding: 'utf8',
      shell: process.platform === 'win32',
    })
    const [bun] = globSync('node_modules/@oven/*/bin/bun*', { cwd: folder })
    if (npm.status !== 0 || bun === undefined) throw new Error(`Bun could not be installed. ${npm.stderr}`)
    return await use(join(folder, bun))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Builds an executable for this machine. @param runtime What runs it. @param bun Path of Bun, which bundles it. */
export async function buildExecutable(
  runtime: 'node' | 'bun',
  file: string,
  bun: string,
  root: string = project,
): Promise<void> {
  if (runtime === 'node' && !canBuildNode()) {
    throw new Error(`Node 25.7 or newer builds executables, and this is ${process.versions.node}`)
  }
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-executable-'))
  const run = (program: string, ...words: string[]) => promisify(execFile)(program, words, { cwd: folder })
  // undici names its own file, whose path would be another each time.
  const flags = ['--minify-syntax', '--minify-whitespace', '--format=esm', '--define=__filename="index.js"']
  const bundle = (...words: string[]) => run(bun, 'build', './cli/main.ts', ...flags, ...words)
  try {
    prepareSources(root, folder)
    const output = 'partner-api.exe'
    if (runtime === 'bun') {
      await bundle('--compile', '--bytecode', `--outfile=${output}`)
    } else {
      await bundle('--target=node', '--outfile=main.mjs')
      const config = {
        main: 'main.mjs',
        mainFormat: 'module',
        output,
        disableExperimentalSEAWarning: true,
        useCodeCache: true,
      }
      writeFileSync(join(folder, 'sea.json'), JSON.stringify(config))
      await run(process.execPath, '--build-sea', 'sea.json')
    }
    cpSync(join(folder, output), file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Whether this Node has `--build-sea`. */
export function canBuildNode(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > 25 || (major === 25 && minor >= 7)
}

if (import.meta.main) {
  const [runtime = '', given] = process.argv.slice(2)
  if (runtime !== 'node' && runtime !== 'bun') {
    console.error('usage: npm run executable -- node|bun [FILE]')
    process.exit(2)
  }
  const file = resolve(given ?? `dist/partner-api-${runtime}`)
  mkdirSync(resolve(file, '..'), { recursive: true })
  await withBun((bun) => buildExecutable(runtime, file, bun))
  console.log(`${file} has ${(statSync(file).size / 2 ** 20).toFixed(0)} MiB.`)
}

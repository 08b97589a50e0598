/** Releases a copy of the project, and runs programs where nothing else of the checkout can be found. */
import { spawn } from 'node:child_process'
import { cpSync, existsSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { cleanEnv, type Ended, ending } from '../support/cli-program.ts'
import { NOTICE, pages } from './ready.ts'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

export interface Manifest {
  readonly version: string
  readonly sideEffects: boolean
  readonly exports: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

export const MANIFEST: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** What the packages are built from, and what a release reads. */
const sources = [
  '.gitignore',
  '.npmrc',
  'package.json',
  'package-lock.json',
  'deno.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'tsconfig.json',
  'core',
  'adapters',
  'cli',
  'fixtures/content',
  'examples',
  'docs',
  'test/guard.cjs',
]

/**
 * Copies the project into a repository of its own, with one commit and the installed dependencies.
 *
 * @param changes What becomes of the text of a file, by its path. A new file has no text.
 */
export async function createRepository(
  folder: string,
  paths: readonly string[],
  changes: Readonly<Record<string, (text: string) => string>>,
): Promise<void> {
  for (const path of paths) cpSync(join(ROOT, path), join(folder, path), { recursive: true })
  for (const [path, change] of Object.entries(changes)) {
    const file = join(folder, path)
    writeFileSync(file, change(existsSync(file) ? readFileSync(file, 'utf8') : ''))
  }
  linkDependencies(ROOT, folder)
  await run('git', ['init', '-q'], folder)
  // A pattern that ends with a slash does not match links.
  writeFileSync(join(folder, '.git/info/exclude'), 'node_modules\n')
  await commit(folder)
}

/** Gives a copy of a project its installed dependencies. */
export function linkDependencies(project: string, copy: string): void {
  symlinkSync(realpathSync(join(project, 'node_modules')), join(copy, 'node_modules'))
}

/** Commits everything. */
export async function commit(folder: string, more?: Readonly<Record<string, string>>): Promise<void> {
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false']
  await run('git', ['add', '--all'], folder)
  await run('git', [...identity, 'commit', '--allow-empty', '-qm', 'everything'], folder, more)
}

/** Runs `npm run release` on a repository, without npm's own lines. */
export function release(repository: string, ...args: string[]): Promise<Ended> {
  return attempt(process.execPath, [join(ROOT, 'test/package/release.ts'), ...args], repository)
}

/** Copies the project as it is into a repository, and has its pages say that it is published. */
export async function createReadyRepository(folder: string): Promise<void> {
  const published = (text: string): string => text.replaceAll(new RegExp(NOTICE, 'gi'), 'published')
  await createRepository(folder, sources, Object.fromEntries(pages.map((page) => [page, published])))
}

/** Runs a program to its end. @throws with its output if it fails. */
export async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  more?: Readonly<Record<string, string>>,
): Promise<Ended> {
  const ended = await attempt(program, args, cwd, more)
  if (ended.code === 0) return ended
  throw new Error(`${program} ${args.join(' ')}: ${ended.code}\n${ended.stdout}${ended.stderr}`)
}

/** Runs a program to its end, whatever its exit code. */
export function attempt(
  program: string,
  args: readonly string[],
  cwd: string,
  more?: Readonly<Record<string, string>>,
): Promise<Ended> {
  const env = cleanEnv(more)
  // npm passes its own settings to the programs it runs, and another npm would apply them.
  for (const name of Object.keys(env)) if (/^(?:npm_|NODE_COMPILE_CACHE$|TAP)/.test(name)) delete env[name]
  env['PATH'] = [dirname(process.execPath), env['PATH']].join(delimiter)
  const child = spawn(program, args, { cwd, env })
  child.stdin.end()
  return ending(child)
}

/** The path of a program in the test tools. */
export function binary(name: string): string {
  return join(ROOT, 'test/node_modules/.bin', name)
}

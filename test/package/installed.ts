/** Releases a copy of the project, and runs programs where nothing else of the checkout can be found. */
import { spawn } from 'node:child_process'
import { cpSync, existsSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { cleanEnv, type Ended, ending, temporaryFolder } from '../support/cli-program.ts'
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

/** The packages as `npm run release` leaves them. */
export interface Released {
  /** What the command printed. */
  readonly report: string
  /** A project in which both packages are installed. */
  readonly folder: string
  /** The folder of a package's files, or the path of one. */
  pathIn(name: 'partner-api' | 'partner-api-client', file?: string): string
}

/** What the packages are built from, and what a release reads. */
const sources = [
  '.gitignore',
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
export async function commit(folder: string): Promise<void> {
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false']
  await run('git', ['add', '--all'], folder)
  await run('git', [...identity, 'commit', '--allow-empty', '-qm', 'everything'], folder)
}

/** Runs `npm run release` on a repository, without npm's own lines. */
export function release(repository: string, ...args: string[]): Promise<Ended> {
  return attempt(process.execPath, [join(ROOT, 'test/package/release.ts'), ...args], repository)
}

/** Releases the working copy. @throws with the report if it is not ready. */
export async function releasePackages(): Promise<Released> {
  const home = temporaryFolder()
  const repository = join(home, 'repository')
  const published = (text: string): string => text.replaceAll(new RegExp(NOTICE, 'gi'), 'published')
  await createRepository(repository, sources, Object.fromEntries(pages.map((page) => [page, published])))
  const url = 'https://github.com/acme-travel/partner-api'
  const words = ['--repository', url, '--checked', '--out', join(home, 'out')]
  const { code, stdout, stderr } = await release(repository, ...words)
  if (code !== 0) throw new Error(`${stdout}${stderr}`)
  const folder = join(home, 'out/project')
  return { report: stdout, folder, pathIn: (name, file = '') => join(folder, 'node_modules', name, file) }
}

/** Runs a program to its end. @throws with its output if it fails. */
export async function run(program: string, args: readonly string[], cwd: string): Promise<Ended> {
  const ended = await attempt(program, args, cwd)
  if (ended.code === 0) return ended
  throw new Error(`${program} ${args.join(' ')}: ${ended.code}\n${ended.stdout}${ended.stderr}`)
}

/** Runs a program to its end, whatever its exit code. */
export function attempt(program: string, args: readonly string[], cwd: string): Promise<Ended> {
  const env = cleanEnv()
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

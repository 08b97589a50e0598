/** Releases a copy of the project, and runs programs where nothing else of the checkout can be found. */
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { cleanEnv, type Ended, ending } from '../support/cli-program.ts'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

export interface Manifest {
  readonly version: string
  readonly sideEffects: boolean
  readonly exports: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
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
  remove(): void
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
  'test/lab.ts',
  'test/package/build-client.ts',
  'test/package-lock.json',
]

/** Copies the project into a repository of its own, with one commit and the installed dependencies. */
export async function createRepository(folder: string, paths: readonly string[] = sources): Promise<void> {
  for (const path of paths) cpSync(join(ROOT, path), join(folder, path), { recursive: true })
  for (const path of ['node_modules', 'test/node_modules', 'test/package/node_modules']) {
    if (existsSync(join(ROOT, path))) symlinkSync(join(ROOT, path), join(folder, path))
  }
  await run('git', ['init', '-q'], folder)
  // A pattern that ends with a slash does not match links.
  writeFileSync(join(folder, '.git/info/exclude'), 'node_modules\n')
  await run('git', ['add', '--all'], folder)
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false']
  await run('git', [...identity, 'commit', '-qm', 'everything'], folder)
}

/** Runs `npm run release` on a repository, without npm's own lines. */
export function release(repository: string, ...args: string[]): Promise<Ended> {
  return attempt(process.execPath, [join(ROOT, 'test/package/release.ts'), ...args], repository)
}

/** Releases the working copy. @throws with the report if it is not ready. */
export async function releasePackages(): Promise<Released> {
  const home = mkdtempSync(join(tmpdir(), 'partner-api-package-'))
  const remove = (): void => rmSync(home, { recursive: true, force: true })
  try {
    const repository = join(home, 'repository')
    await createRepository(repository)
    const words = [
      '--repository',
      'https://github.com/acme-travel/partner-api',
      '--checked',
      '--out',
      join(home, 'out'),
    ]
    const { code, stdout, stderr } = await release(repository, ...words)
    if (code !== 0) throw new Error(`${stdout}${stderr}`)
    const folder = join(home, 'out/project')
    return {
      report: stdout,
      folder,
      remove,
      pathIn: (name, file = '') => join(folder, 'node_modules', name, file),
    }
  } catch (error) {
    remove()
    throw error
  }
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

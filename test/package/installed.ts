/** Packs the package from a clean copy, and installs it where nothing else of the checkout can be found. */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
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

export interface Installed {
  /** The project. Its `node_modules` hold the package and the dependencies that the manifest declares. */
  readonly folder: string
  readonly tarball: string
  /** Path and bytes of everything in the tarball. */
  readonly files: readonly { readonly path: string; readonly size: number }[]
  /** Bytes of the tarball. */
  readonly size: number
  remove(): void
}

/** What the package is built from. */
const sources = [
  'package.json',
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
  'test/package-lock.json',
]

/**
 * Packs and installs without a registry: the declared dependencies are installed as copies of those in the checkout.
 */
export async function installPackage(): Promise<Installed> {
  const home = mkdtempSync(join(tmpdir(), 'partner-api-package-'))
  const remove = (): void => rmSync(home, { recursive: true, force: true })
  try {
    return { ...await packAndInstall(home), remove }
  } catch (error) {
    remove()
    throw error
  }
}

async function packAndInstall(home: string): Promise<Omit<Installed, 'remove'>> {
  const copy = join(home, 'copy')
  for (const path of sources) cpSync(join(ROOT, path), join(copy, path), { recursive: true })
  for (const path of ['node_modules', 'test/node_modules']) symlinkSync(join(ROOT, path), join(copy, path))
  const packed = await run('npm', ['pack', '--json', '--loglevel=error', '--pack-destination', home], copy)
  // The output of the build comes first.
  const [{ filename, files, size }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf('[\n')))
  const tarball = join(home, filename)
  const folder = join(home, 'project')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n')
  await run('npm', [
    'install',
    '--offline',
    '--install-links',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    tarball,
    ...Object.keys(MANIFEST.dependencies).map((name) => join(ROOT, 'node_modules', name)),
  ], folder)
  return { folder, tarball, files, size }
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

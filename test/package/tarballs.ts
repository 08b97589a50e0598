/** Packs the two packages from a copy of the checkout, and installs them as their users do. */
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Ended } from '../support/cli-program.ts'
import { MANIFEST, ROOT, run } from './installed.ts'

/** The packages on npm: the service, and the client for partners. */
export const NAMES = ['partner-api', 'partner-api-client'] as const

/** The name of a package's tarball. */
export const tarballOf = (name: string): string => `${name}-${MANIFEST.version}.tgz`

/** What the packages are built from. */
const sources = [
  '.npmrc',
  'package.json',
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
 * Copies the checkout, without what is installed and built in it.
 *
 * @param additions Members of the manifest that a first release adds.
 */
export function copyCheckout(folder: string, additions: object = {}): void {
  for (const path of sources) cpSync(join(ROOT, path), join(folder, path), { recursive: true })
  symlinkSync(realpathSync(join(ROOT, 'node_modules')), join(folder, 'node_modules'))
  const file = join(folder, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, `${JSON.stringify({ ...manifest, ...additions }, null, 2)}\n`)
}

/** What `npm pack` says of a tarball. */
export interface Packed {
  readonly filename: string
  readonly entryCount: number
  readonly size: number
}

/** Packs both packages of a checkout, as `docs/CONTRIBUTING.md` says. The first command builds both. */
export async function packPackages(checkout: string, out: string): Promise<readonly Packed[]> {
  mkdirSync(out, { recursive: true })
  const packed: Packed[] = []
  for (const folder of ['.', './dist/client']) {
    const { stdout } = await run('npm', ['pack', folder, '--json', '--pack-destination', out], checkout)
    // The output of the build comes first.
    packed.push(...JSON.parse(stdout.slice(stdout.indexOf('[\n'))))
  }
  return packed
}

/** Installs tarballs in a new project. @returns What npm printed. */
export async function installPackages(
  project: string,
  tarballs: readonly string[],
  registry: string,
): Promise<Ended> {
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n')
  const flags = ['--registry', registry, '--cache', join(project, '.npm')]
  return await run('npm', ['install', ...flags, ...tarballs], project)
}

/** The names of the packages that are installed in a project. */
export function installedIn(project: string): readonly string[] {
  return readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))
}

/** Packs and installs the two packages, and verifies what npm and JSR would get. */
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { isDeepStrictEqual } from 'node:util'
import { binary, linkDependencies, run } from './installed.ts'
import { type Check, commitSeconds, type Links } from './ready.ts'

/** The packages on npm: the service, and the client for partners. */
export const NAMES = ['partner-api', 'partner-api-client'] as const

/** A manifest or lock file. */
export const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))

/**
 * Packs both packages from a copy of the commit, with the links in their manifests. `out` receives the tarballs, and the
 * folder `client` for JSR. The same commit has the same tarballs, byte for byte, if the same npm and Node pack them.
 */
export async function packPackages(root: string, out: string, links?: Links): Promise<string> {
  const copy = mkdtempSync(join(tmpdir(), 'partner-api-release-'))
  mkdirSync(out, { recursive: true })
  try {
    await run('git', ['checkout-index', '--all', '--prefix', `${copy}/`], root)
    linkDependencies(root, copy)
    const { scripts: { prepare: _, ...scripts }, ...own } = readJson(join(copy, 'package.json'))
    const manifest = {
      ...own,
      // npm warns its users about `prepare`, which is of checkouts only.
      scripts,
      ...links && {
        repository: { type: 'git', url: `git+${links.repository}.git` },
        homepage: links.homepage,
        bugs: { url: links.bugs },
      },
    }
    writeFileSync(join(copy, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    const packed: string[] = []
    // The first builds both.
    for (const folder of ['.', './dist/client']) {
      const words = ['pack', folder, '--json', '--loglevel=error', '--pack-destination', out]
      const { stdout } = await run('npm', words, copy, { SOURCE_DATE_EPOCH: String(commitSeconds(root)) })
      // The output of the build comes first.
      const [{ filename, entryCount, size }] = JSON.parse(stdout.slice(stdout.indexOf('[\n')))
      packed.push(`${filename} has ${entryCount} files and ${size.toLocaleString('en')} bytes`)
    }
    cpSync(join(copy, 'dist/client'), join(out, 'client'), { recursive: true })
    return packed.join('\n')
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** What the lock file says of the packages that `partner-api` needs: those of dependencies, too. */
export function dependencies(root: string) {
  const locked: Record<string, { dev?: true; devOptional?: true; optional?: true; link?: true }> =
    readJson(join(root, 'package-lock.json')).packages
  return Object.entries(locked).filter(([path, { dev, devOptional, optional, link }]) =>
    /^node_modules\//.test(path) && !dev && !devOptional && !optional && !link
  )
}

/**
 * Installs the tarballs, without a registry, where nothing of the checkout can be found: both in `trial/project`, with
 * copies of the dependencies of `partner-api`, and the client alone in `trial/partner`.
 */
export async function installPackages(
  root: string,
  out: string,
  version: string,
  trial: string,
): Promise<string> {
  const [service = '', client = ''] = NAMES.map((name) => join(out, `${name}-${version}.tgz`))
  // npm's cache need not know the versions of dependencies.
  const copies = dependencies(root).map(([path]) => realpathSync(join(root, path)))
  const flags = ['--offline', '--install-links', '--ignore-scripts', '--no-audit', '--no-fund']
  const install = async (name: string, packages: readonly string[]) => {
    const folder = join(trial, name)
    mkdirSync(folder)
    writeFileSync(join(folder, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n')
    await run('npm', ['install', ...flags, ...packages], folder)
    return readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))
  }
  const [, alone] = await Promise.all([
    install('project', [service, client, ...copies]),
    install('partner', [client]),
  ])
  if (alone.join() === 'partner-api-client') return 'both packages; the client brings no other package'
  throw new Error(`the client brings other packages: ${alone.join(', ')}`)
}

/** What is verified of the installed packages without the test tools. */
export function verifications(
  root: string,
  out: string,
  version: string,
  trial: string,
  isLinked: boolean,
): readonly Check[] {
  const project = join(trial, 'project')
  return [
    ...ofEach({
      'files': (name) => checkFiles(join(project, 'node_modules', name), root),
      'manifest': (name) => checkManifest(join(project, 'node_modules', name), trial, isLinked),
      'imports': (name) => importEntries(join(project, 'node_modules', name), project),
      'npm publish --dry-run': (name) =>
        passes('npm', ['publish', '--dry-run', '--offline', join(out, `${name}-${version}.tgz`)], out),
    }),
    ['partner-api demo', async () => {
      const { stdout } = await run(
        'npx',
        ['--no-install', 'partner-api', 'demo', '--no-serve', '--json'],
        project,
      )
      return `created the partner ${JSON.parse(stdout).data.partner}`
    }],
  ]
}

/** What is verified with the test tools. */
export function toolVerifications(root: string, out: string, version: string, trial: string): Check[] {
  return ofEach({
    'publint --strict': (name) => {
      const unpacked = join(trial, 'project/node_modules', name)
      return passes(binary('publint'), ['--strict', '--pack', 'false', unpacked], out)
    },
    'attw': (name) =>
      passes(binary('attw'), [join(out, `${name}-${version}.tgz`), '--profile', 'esm-only'], out),
    'deno publish --dry-run': (name) => simulateJsr(name === 'partner-api' ? root : join(out, 'client')),
  })
}

function ofEach(checks: Readonly<Record<string, (name: string) => string | Promise<string>>>): Check[] {
  return NAMES.flatMap((name) =>
    Object.entries(checks).map(([what, check]) => [`${name}: ${what}`, () => check(name)])
  )
}

async function passes(program: string, args: readonly string[], folder: string): Promise<string> {
  await run(program, args, folder)
  return 'passed'
}

/** @throws if a file is missing, was made on this machine, or is linked to and not there. */
function checkFiles(unpacked: string, root: string): string {
  const paths = globSync('**', { cwd: unpacked, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1))
  const faults = ['LICENSE', 'README.md'].filter((path) => !paths.includes(path)).map((path) => `no ${path}`)
  // Of this machine: a path in a source map, or in anything else that a build leaves.
  const local = [root, realpathSync(tmpdir()), process.env['HOME'] ?? root].filter((path) => path.length > 1)
  for (const path of paths) {
    const text = readFileSync(join(unpacked, path), 'utf8')
    if (/\.map$/.test(path) || /^\/\/# sourceMappingURL=/m.test(text)) {
      faults.push(`${path} is or has a source map`)
    }
    for (const folder of local) if (text.includes(`${folder}/`)) faults.push(`${path} names ${folder}`)
  }
  // npm resolves relative links with the repository, and a reader of the installed package with its folder.
  for (const page of ['README.md', 'CHANGELOG.md'].filter((page) => paths.includes(page))) {
    const text = readFileSync(join(unpacked, page), 'utf8')
    for (
      const [, link = ''] of text.matchAll(
        /(?:\]\(|\b(?:src|srcset|href)=")(?!https?:|mailto:|#)([^)"#\s]+)/g,
      )
    ) {
      if (!existsSync(join(unpacked, link))) {
        faults.push(`${page} links to ${link}, which is not in the package`)
      }
    }
  }
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return `${paths.length}, with LICENSE and README, without source maps, paths of this machine and dead links`
}

/** @throws if npm would change the manifest, or it does not say where the project is. */
async function checkManifest(unpacked: string, trial: string, isLinked: boolean): Promise<string> {
  const manifest = readJson(join(unpacked, 'package.json'))
  const aside = mkdtempSync(join(trial, 'manifest-'))
  cpSync(join(unpacked, 'package.json'), join(aside, 'package.json'))
  await run('npm', ['pkg', 'fix'], aside)
  const isFixed = isDeepStrictEqual(readJson(join(aside, 'package.json')), manifest)
  if (!isFixed) throw new Error('npm pkg fix changes it')
  const missing = [
    'description',
    'license',
    'engines',
    'exports',
    ...isLinked ? ['repository', 'homepage', 'bugs'] : [],
  ]
    .filter((member) => manifest[member] === undefined)
  if (missing.length > 0) throw new Error(`lacks ${missing.join(', ')}`)
  return isLinked ? `${manifest.repository.url}, ${manifest.homepage}, ${manifest.bugs.url}` : 'no links'
}

async function importEntries(unpacked: string, project: string): Promise<string> {
  const { name, exports } = readJson(join(unpacked, 'package.json'))
  const entries = typeof exports === 'string' ? ['.'] : Object.keys(exports)
  const code = 'for (const entry of process.argv.slice(1)) await import(entry)'
  const names = entries.map((entry) => name + entry.slice(1))
  await run(process.execPath, ['--input-type=module', '-e', code, ...names], project)
  return names.join(', ')
}

/** @throws if JSR would refuse the package, or get files that its entries do not import. */
async function simulateJsr(folder: string): Promise<string> {
  const words = ['publish', '--dry-run', '--allow-dirty', '--no-check']
  const { stderr } = await run(binary('deno'), words, folder)
  const paths = Array.from(stderr.matchAll(/^ +file:\/\/(\S+)/gm), ([, path = '']) => path)
    .map((path) => path.slice(realpathSync(folder).length + 1))
  const published =
    /^(?:(?:core|adapters)\/.+\.(?:ts|json)|client\.(?:js|d\.ts)|(?:deno|jsr)\.json|[A-Z]+(?:\.md)?)$/
  const others = paths.filter((path) => !published.test(path))
  if (paths.length === 0 || others.length > 0) {
    throw new Error(`JSR would get ${others.join(', ') || 'no files'}`)
  }
  return `${paths.length} files`
}

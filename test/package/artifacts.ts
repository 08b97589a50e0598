/** What a release holds beside the packages of npm: executables, a list of dependencies, a container context, checksums. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import process from 'node:process'
import { buildExecutable, withBun } from './executable.ts'
import { run } from './installed.ts'
import { commitSeconds } from './ready.ts'
import { dependencies, readJson } from './tarballs.ts'

const writeJson = (path: string, value: unknown) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
const digest = (algorithm: string, path: string) => createHash(algorithm).update(readFileSync(path))

/** Builds an executable for each runtime, and starts it in an empty folder without an environment. */
export async function writeExecutables(root: string, out: string, version: string, trial: string) {
  const cwd = join(trial, 'empty')
  mkdirSync(cwd)
  const built: string[] = []
  await withBun(async (bun) => {
    for (const [runtime, program] of [['node', process.execPath], ['bun', bun]] as const) {
      const found = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim().replace('v', '')
      const suffix = process.platform === 'win32' ? '.exe' : ''
      const name = `partner-api-${version}-${runtime}-${found}-${process.platform}-${process.arch}${suffix}`
      const file = join(out, name)
      await buildExecutable(runtime, file, bun, root)
      const printed = execFileSync(file, ['--version'], { cwd, env: {}, encoding: 'utf8' }).trim()
      if (printed !== version) throw new Error(`${name} is version ${printed}`)
      built.push(name)
    }
  })
  return built.join('\n')
}

/** Writes what `npm sbom` says of the package, without what differs each time. */
export async function writeSbom(root: string, out: string, version: string, trial: string): Promise<string> {
  // npm takes the name from the folder.
  const folder = join(trial, 'partner-api')
  mkdirSync(folder)
  const manifest = readJson(join(trial, 'project/node_modules/partner-api/package.json'))
  // Those are of the checkout.
  for (const member of ['workspaces', 'devDependencies', 'scripts']) delete manifest[member]
  writeJson(join(folder, 'package.json'), manifest)
  writeJson(join(folder, 'package-lock.json'), lockFile(manifest, dependencies(root)))
  const words = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only']
  const { serialNumber: _, ...sbom } = JSON.parse((await run('npm', words, folder)).stdout)
  sbom.metadata.timestamp = new Date(commitSeconds(root) * 1000).toISOString()
  const name = `partner-api-${version}.cdx.json`
  writeJson(join(out, name), sbom)
  return `${name} lists ${sbom.components.length} packages`
}

/** Writes a folder that `podman build` makes an image of, with the versions of this commit's lock file. */
export function writeContainer(root: string, out: string, version: string): string {
  const folder = join(out, 'container')
  mkdirSync(folder)
  const tarball = `partner-api-${version}.tgz`
  for (const file of [join(out, tarball), join(root, 'examples/deploy/Containerfile')]) {
    cpSync(file, join(folder, basename(file)))
  }
  const manifest = { dependencies: { 'partner-api': `file:${tarball}` } }
  const { name: _, devDependencies: __, ...service } = readJson(join(root, 'package-lock.json')).packages['']
  const resolved = `file:${tarball}`
  const integrity = `sha512-${digest('sha512', join(out, tarball)).digest('base64')}`
  const locked = [
    ['node_modules/partner-api', { ...service, resolved, integrity }] as const,
    ...dependencies(root),
  ]
  writeJson(join(folder, 'package.json'), manifest)
  writeJson(join(folder, 'package-lock.json'), lockFile(manifest, locked))
  return `Containerfile, with ${locked.length} packages in its lock file`
}

function lockFile(manifest: object, locked: readonly (readonly [path: string, package_: object])[]): object {
  return { lockfileVersion: 3, requires: true, packages: { '': manifest, ...Object.fromEntries(locked) } }
}

/** Writes the digest of every file, in the format that `sha256sum --check` reads. */
export function writeChecksums(out: string): string {
  const files = globSync('**', { cwd: out, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(out.length + 1).replaceAll('\\', '/')).sort()
  const lines = files.map((file) => `${digest('sha256', join(out, file)).digest('hex')}  ${file}\n`)
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''))
  return `of ${files.length} files`
}

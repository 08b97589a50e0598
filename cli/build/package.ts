/**
 * Builds `dist`, what npm packs: the compiled sources, the sample content, the manifest for users, and in
 * `dist/client` the package for partners, bundled into one module and one file of types.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { type Plugin, rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const dist = join(root, 'dist')
const source = join(root, 'adapters/client')
const target = join(dist, 'client')
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const manifest = read(join(root, 'package.json'))
const { version, license, author, publishConfig, homepage, bugs, repository } = manifest

async function bundle(entry: string, name: string, banner: string, plugins: Plugin[] = []): Promise<void> {
  const build = await rollup({
    input: join(dist, 'adapters/client', entry),
    plugins,
    onLog(_level, log) {
      throw new Error(log.message)
    },
  })
  await build.write({ file: join(target, name), banner })
  await build.close()
}

const writeJson = (path: string, value: object) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)

const writeManifest = (name: string, more: object) =>
  writeJson(join(target, name), { ...read(join(source, name)), version, license, ...more })

rmSync(dist, { recursive: true, force: true })
const compiler = join(root, 'node_modules/typescript/bin/tsc')
execFileSync(process.execPath, [compiler, '-p', join(root, 'cli')], { stdio: 'inherit' })
cpSync(join(root, 'fixtures/content'), join(dist, 'fixtures/content'), { recursive: true })

// The checkout alone needs these, and npm warns users of scripts.
for (const member of ['scripts', 'workspaces', 'devDependencies']) delete manifest[member]
writeJson(join(dist, 'package.json'), manifest)

mkdirSync(target)
// Deno and JSR find the types of a module by this comment.
await bundle('mod.js', 'client.js', '/* @ts-self-types="./client.d.ts" */')
await bundle('mod.d.ts', 'client.d.ts', '', [dts()])
writeManifest('jsr.json', {})
writeManifest('package.json', {
  author,
  publishConfig,
  homepage,
  bugs,
  repository: repository && { ...repository, directory: 'adapters/client' },
})
cpSync(join(source, 'README.md'), join(target, 'README.md'))
cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'))

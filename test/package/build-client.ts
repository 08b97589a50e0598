/**
 * Builds `dist/client`, the package for partners: what `tsc -p cli` emitted for `adapters/client`, bundled into one module
 * and one file of types, with manifests that take their version from `package.json`.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const source = join(root, 'adapters/client')
const target = join(root, 'dist/client')
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const write = (name: string, manifest: object) =>
  writeFileSync(join(target, name), `${JSON.stringify(manifest, null, 2)}\n`)

async function bundle(entry: string, name: string, banner: string, plugins: Plugin[] = []): Promise<void> {
  const build = await rollup({
    input: join(root, 'dist/adapters/client', entry),
    plugins,
    onLog(_level, log) {
      throw new Error(log.message)
    },
  })
  await build.write({ file: join(target, name), banner })
  await build.close()
}

mkdirSync(target, { recursive: true })
// Deno and JSR find the types of a module by this comment.
await bundle('mod.js', 'client.js', '/* @ts-self-types="./client.d.ts" */')
await bundle('mod.d.ts', 'client.d.ts', '', [dts()])

const { version, license, author, publishConfig, homepage, bugs, repository } = read(
  join(root, 'package.json'),
)
write('package.json', {
  ...read(join(source, 'package.json')),
  version,
  license,
  author,
  publishConfig,
  homepage,
  bugs,
  repository: repository && { ...repository, directory: 'adapters/client' },
})
write('jsr.json', { ...read(join(source, 'jsr.json')), version, license })
cpSync(join(source, 'README.md'), join(target, 'README.md'))
cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'))

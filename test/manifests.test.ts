import { readFileSync } from 'node:fs'
import { test } from 'tap'

type Manifest = { name: string; version: string; exports: Record<string, string> }

const read = (file: string): Manifest =>
  JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'))

const npm = read('package.json')
const jsr = read('deno.json')

test('npm and JSR publish the same version', (t) => {
  t.match(npm.version, /^\d+\.\d+\.\d+$/)
  t.equal(jsr.version, npm.version)
  t.end()
})

test('npm and JSR publish the same entries, one emitted from the other', (t) => {
  const emitted = Object.entries(jsr.exports).map(([entry, source]) => [
    entry,
    source.replace(/^\.\//, './dist/').replace(/\.ts$/, '.js'),
  ])
  t.not(emitted.length, 0)
  t.same(npm.exports, Object.fromEntries(emitted))
  t.end()
})

/** Imports every entry of both packages, and prints what each set going or left behind by that. */
import { readFileSync } from 'node:fs'
import process from 'node:process'

const manifest = JSON.parse(readFileSync('node_modules/partner-api/package.json', 'utf8'))
const traced = {}
let seen = []

function record(owner, name) {
  const original = owner[name]
  owner[name] = function (...words) {
    seen.push(name)
    return Reflect.apply(original, this, words)
  }
}

for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch']) {
  record(globalThis, name)
}
for (const name of ['getRandomValues', 'randomUUID']) record(crypto, name)
for (const name of ['log', 'info', 'warn', 'error', 'debug']) record(console, name)
for (const name of ['on', 'once', 'addListener']) record(process, name)
record(Date, 'now')
record(performance, 'now')

// What Node itself makes global when HTTP is used for the first time.
await import('node:http')

const entries = Object.keys(manifest.exports).map((entry) => [entry, `partner-api${entry.slice(1)}`])
for (const [entry, specifier] of [...entries, ['partner-api-client', 'partner-api-client']]) {
  seen = []
  const before = new Set(Reflect.ownKeys(globalThis))
  await import(specifier)
  for (const name of Reflect.ownKeys(globalThis)) if (!before.has(name)) seen.push(`global ${String(name)}`)
  seen.push(...process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap'))
  traced[entry] = seen
}
process.stdout.write(JSON.stringify(traced))

/** Imports every entry of the package by its name, and prints what each exports. */
import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync('node_modules/partner-api/package.json', 'utf8'))
const exported = {}
for (const entry of Object.keys(manifest.exports)) {
  exported[entry] = Object.keys(await import(`partner-api${entry.slice(1)}`)).sort()
}
console.log(JSON.stringify(exported))

// Packs the template, the style and the script of each page into the JSON that core imports.
// With --check it writes nothing, and exits with 1 where the JSON is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'

const read = (name) => readFileSync(new URL(name, import.meta.url), 'utf8')

/** Comments of a style or script, indentation, and the line breaks and spaces around braces. */
const unneeded = /^ *\/\/.*\n|\/\*[^]*?\*\/\n|^ +|(?<=[{,;])\n| (?=\{\n)/gm

/** The shared page has no script. */
const pages = { page: false, reference: true, claim: true }

for (const [name, hasScript] of Object.entries(pages)) {
  const packed = {
    page: read(`${name}.html`).replace(/^ +/gm, ''),
    style: read(`${name}.css`).replace(unneeded, ''),
    script: hasScript ? read(`${name}.js`).replace(unneeded, '') : undefined,
  }
  const file = `${name}-assets.json`
  const text = `${JSON.stringify(packed, null, 2)}\n`
  if (!process.argv.includes('--check')) {
    writeFileSync(new URL(file, import.meta.url), text)
  } else if (read(file) !== text) {
    console.error(`${file} is out of date. To pack it again: npm run reference`)
    process.exitCode = 1
  }
}

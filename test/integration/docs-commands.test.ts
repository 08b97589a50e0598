/**
 * Checks the code blocks of the docs by their language. `page-commands.ts` runs `sh` and `ts`, here of the pages without curl.
 *
 * - `console`: commands that a test cannot run, only of the programs in `notRun`.
 * - `json` is JSON, `text` is output or a diagram, and `mermaid` is a picture, which `architecture.test.ts` compares.
 * - After `<!-- examples/FILE -->`, and in any other language: the block equals that file, which other tests run.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { blocksOf, PAGES, readPage, ROOT } from './docs.ts'
import { isRun, pagesWithCommands, testCommands } from './page-commands.ts'

/** Programs that need root, a registry or a daemon, and those that run what these install. */
const notRun = [
  'cp',
  'node',
  'npm',
  'npx',
  'bun',
  'bunx',
  'deno',
  'docker',
  'kubectl',
  'sudo',
  'systemctl',
  'journalctl',
]
const blocks = PAGES.flatMap(blocksOf)

for (const page of pagesWithCommands({ curl: false })) testCommands(page)

t.test('a command that starts a server is the only one of its code block', (t) => {
  const serving = blocks.filter(({ language, code }) =>
    language === 'sh' && /^partner-api serve /m.test(code)
  )
  t.ok(serving.length >= 2)
  for (const { place, code } of serving) t.match(code, /^partner-api serve .*\n$/, place)
  t.end()
})

t.test('blocks that are not run show files, JSON, output or commands of other programs', (t) => {
  for (const block of blocks) {
    const { place, language, file, code } = block
    if (isRun(block) || /^(?:text|mermaid)$/.test(language)) continue
    if (language === 'json') t.ok(JSON.parse(code), place)
    else if (language === 'console') {
      for (const line of code.trim().replaceAll('\\\n', '').split('\n')) {
        t.ok(line.startsWith('#') || notRun.includes(line.split(' ')[0]!), `${place}: ${line}`)
      }
    } else t.equal(code, file && readFileSync(join(ROOT, file), 'utf8'), `${place} shows a file of examples`)
  }
  // test/embedding/shop-postgres.test.ts runs those of npx.
  const count =
    blocks.filter(({ language, code }) => language === 'console' && !code.startsWith('npx ')).length
  t.ok(count <= 18, `${count} blocks of commands that no test runs`)
  t.end()
})

t.test('every example has a place in the docs', (t) => {
  const docs = PAGES.map(readPage).join('')
  for (const name of readdirSync(join(ROOT, 'examples'))) t.match(docs, `examples/${name}`)
  t.end()
})

t.test('the npm scripts that the docs name exist', (t) => {
  const { scripts } = JSON.parse(readPage('package.json'))
  for (const page of [...PAGES, 'test/README.md']) {
    const text = readPage(page)
    for (
      const [, script = ''] of text.matchAll(
        /npm (?:run (?:-s )?)?(start|test|check|fmt|build|bench|partner-api)\b/g,
      )
    ) {
      t.type(scripts[script], 'string', `${page}: npm script ${script}`)
    }
  }
  t.end()
})

t.test('the directory example is as short as the docs state', (t) => {
  t.match(readPage('docs/embed.md'), 'fewer than 120 lines')
  t.ok(readPage('examples/companies.ts').trimEnd().split('\n').length < 120)
  t.end()
})

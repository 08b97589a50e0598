/** Checks links, anchors, paths and the length of every page. */
import { existsSync, globSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { PAGES, proseOf, readPage, ROOT } from './docs.ts'

/** Hosts that the docs may link to; their pages are not fetched. */
const hosts = [
  'semver.org',
  'www.rfc-editor.org',
  'www.postgresql.org',
  'www.pgbouncer.org',
  'nodejs.org',
  'patroni.readthedocs.io',
  'www.standardwebhooks.com',
  // Sources of docs/compared.md.
  'github.com',
  'zuplo.com',
  'developer.konghq.com',
]

const all = [
  ...PAGES,
  'CHANGELOG.md',
  ...globSync('{test,examples,adapters}/**/*.md', { cwd: ROOT, exclude: ['**/node_modules'] }).sort(),
]

/** The anchors of a page, as GitHub makes them from headings. */
function anchorsOf(page: string): readonly string[] {
  const counts = new Map<string, number>()
  return Array.from(proseOf(page).matchAll(/^#+ (.+)$/gm), ([, heading = '']) => {
    const slug = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
    const count = counts.get(slug) ?? 0
    counts.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}

t.test('links and anchors exist', (t) => {
  let checked = 0
  for (const page of all) {
    const text = proseOf(page)
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/(?:src|srcset|href)="([^"]+)"/g)]
    for (const [, target = ''] of targets) {
      checked++
      if (/^\w+:/.test(target)) {
        const { protocol, host } = new URL(target)
        t.ok(protocol === 'https:' && hosts.includes(host), `${page}: ${target} is on a known host`)
        continue
      }
      const [path = '', anchor] = target.split('#')
      const linked = path === '' ? page : normalize(join(dirname(page), path))
      t.ok(existsSync(join(ROOT, linked)), `${page}: ${target}`)
      if (anchor !== undefined) t.ok(anchorsOf(linked).includes(anchor), `${page}: ${target}`)
    }
  }
  t.ok(checked > 50)
  t.end()
})

t.test('the docs name only files that exist', (t) => {
  for (const page of all) {
    const paths = readPage(page).matchAll(
      /(?<![\w/.-])(?:core|adapters|cli|test|docs|examples|fixtures)\/[\w./*{},-]*[\w/}]/g,
    )
    for (const [path] of paths) {
      t.not(globSync(path.replace('NAME', '*'), { cwd: ROOT }).length, 0, `${page}: ${path}`)
    }
  }
  t.end()
})

t.test('pages are short and listed', (t) => {
  const index = readPage('docs/README.md')
  for (const page of PAGES) {
    const lines = readPage(page).trimEnd().split('\n')
    t.ok(lines.length <= (page === 'README.md' ? 150 : 250), `${page} has ${lines.length} lines`)
    t.match(lines[0], /^# ./, page)
    if (page.startsWith('docs/') && page !== 'docs/README.md') t.match(index, `(${page.slice(5)})`)
  }
  t.end()
})

t.test('diagrams are accessible, adapt to dark mode, and load nothing', (t) => {
  const diagrams = globSync('docs/*.svg', { cwd: ROOT })
  t.equal(diagrams.length, 2)
  for (const diagram of diagrams) {
    const svg = readPage(diagram)
    t.match(svg, /^<svg\s[^>]*role="img" aria-labelledby="title desc"/, diagram)
    for (const id of ['title', 'desc']) {
      t.match(svg, new RegExp(`<${id}\\s+id="${id}">[^<]{10,}</${id}>`), diagram)
    }
    t.match(svg, '@media (prefers-color-scheme: dark)', diagram)
    t.notMatch(svg, /<script|<image|<use|href=|url\(http|@import/, diagram)
    t.ok(statSync(join(ROOT, diagram)).size < 12_000, diagram)
  }
  t.end()
})

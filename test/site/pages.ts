/** The sources of the site: the pages of the repository with links between them, and files that they link to. */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { referencePages } from './reference.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = join(ROOT, 'test/site/.pages')
const unlisted = '---\nsearch: false\nprev: false\nnext: false\n---\n\n'
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Anchors of headings, as GitHub makes them. */
export function slugify(heading: string): string {
  return heading.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
}

export interface SidebarGroup {
  readonly text: string
  readonly items: readonly { readonly text: string; readonly link: string }[]
}

const languages: Readonly<Record<string, string>> = {
  '.cfg': 'ini',
  '.conf': 'nginx',
  '.env': 'ini',
  '.service': 'ini',
  '.yaml': 'yaml',
  '.yml': 'yaml',
}

/** Where a file of the repository is on the site, without the end. */
function placeOf(path: string): string {
  if (path === 'README.md') return 'index'
  if (path === 'docs/README.md') return 'docs'
  if (path === 'adapters/client/README.md') return 'client'
  if (path === 'test/README.md') return 'tests'
  const [, recipe] = /^examples\/partners\/(\w+)\/README\.md$/.exec(path) ?? []
  if (recipe !== undefined) return `recipe-${recipe}`
  if (/^(docs\/)?[^/]+\.md$/.test(path)) return basename(path, '.md').toLowerCase()
  return path.replaceAll(/[/.]/g, '-')
}

/**
 * Writes all pages, and into `public` what is copied to the site as it is: each page as Markdown, and `llms.txt`.
 *
 * @param base Path of the site, which ends with `/`.
 * @returns The sidebar: the index of the docs, and the reference of the library.
 */
export function writePages(base: string, summary: string): readonly SidebarGroup[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(join(FOLDER, 'public'), { recursive: true })
  const write = (place: string, text: string, page = text): void => {
    writeFileSync(join(FOLDER, 'public', `${place}.md`), text)
    writeFileSync(join(FOLDER, `${place}.md`), withTabs(page))
  }
  const sources = ['README.md', 'CHANGELOG.md', 'test/README.md', 'adapters/client/README.md']
  sources.push(...globSync(['docs/*.md', 'examples/partners/*/README.md'], { cwd: ROOT }).sort())
  const files = new Set<string>()
  const linked = (source: string): string =>
    read(source).replaceAll(/(\]\()([^)\s:#]+)((?:#[^)\s]*)?\))/g, (_, open, target: string, close) => {
      const path = normalize(join(dirname(source), target)).replaceAll('\\', '/')
      if (extname(path) === '.svg') return `${open}./${basename(path)}${close}`
      if (!sources.includes(path)) files.add(path)
      return `${open}./${placeOf(path)}.md${close}`
    })
  for (const source of sources) {
    const text = linked(source)
    write(placeOf(source), text)
  }
  for (const path of files) write(placeOf(path), filePage(path), `${unlisted}${filePage(path)}`)
  for (const svg of globSync('docs/*.svg', { cwd: ROOT })) {
    cpSync(join(ROOT, svg), join(FOLDER, basename(svg)))
    cpSync(join(ROOT, svg), join(FOLDER, 'public', basename(svg)))
  }
  const reference = referencePages(ROOT)
  for (const [place, text] of reference) write(place, text)
  const index = linked('docs/README.md')
  writeFileSync(
    join(FOLDER, 'public/llms.txt'),
    index.replace(/^# .+$/m, `# partner-api\n\n> ${summary}`).replaceAll('](./', `](${base}`),
  )
  const entries = Array.from(
    reference,
    ([place, text]) => ({ text: /^# `(.+)`$/m.exec(text)![1]!, link: `/${place}` }),
  )
  return [...sidebarOf(index), { text: 'Library reference', items: entries }]
}

/** Code blocks of example files that follow each other become tabs. */
function withTabs(text: string): string {
  return text.replaceAll(
    /(?:<!-- examples\/\S+ -->\n```\w+\n(?:(?!```).*\n)*```\n\n?){2,}/g,
    (blocks) =>
      `::: code-group\n\n${blocks.replaceAll(/<!-- \S*\/(\S+) -->\n(```\w+)\n/g, '$2 [$1]\n')}\n:::\n\n`,
  )
}

/** A file that pages link to, as a page. */
function filePage(path: string): string {
  const language = languages[extname(path)] ?? (extname(path).slice(1) || 'sh')
  return `# ${basename(path)}\n\n\`${path}\` in the package and in the repository:\n\n\`\`\`${language}\n${
    read(path)
  }\`\`\`\n`
}

/** The groups of docs/README.md, with every page that they link to. */
function sidebarOf(index: string): SidebarGroup[] {
  return index.split(/^## /m).slice(1).map((section) => ({
    text: section.slice(0, section.indexOf('\n')),
    items: Array.from(section.matchAll(/\[(.+?)\]\(\.\/(.+?)\.md\)/g), ([, text = '', place = '']) => ({
      text: text[0]!.toUpperCase() + text.slice(1),
      link: `/${place}`,
    })),
  }))
}

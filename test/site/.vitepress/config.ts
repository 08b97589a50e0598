/** The site that `npm run site` builds of the docs. Types of VitePress are not used: `npm run check` runs without it. */
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { slugify, writePages } from '../pages.ts'

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const { version, description } = JSON.parse(read('package.json'))
const base = process.env['SITE_BASE'] ?? '/'
const sidebar = writePages(base, description)

/** Released versions, each with its section of the changelog. */
const versions = Array.from(read('CHANGELOG.md').matchAll(/^## (\d\S*)/gm), ([, text = '']) => ({
  text: `${text}: changes`,
  link: `/changelog#${slugify(text)}`,
}))

export default {
  srcDir: '.pages',
  srcExclude: ['public/**'],
  outDir: '../../.site',
  base,
  lang: 'en',
  title: 'partner-api',
  description,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  transformHead: ({ page }: { page: string }) => [
    ['link', { rel: 'alternate', type: 'text/markdown', href: `${base}${page}` }],
  ],
  markdown: {
    anchor: { slugify },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    nav: [
      { text: 'Partners', link: '/partners' },
      { text: 'Self-hosters', link: '/embed' },
      { text: 'Operators', link: '/operate' },
      { text: 'Contributors', link: '/contributing' },
      { text: version, items: versions },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    externalLinkIcon: true,
  },
}

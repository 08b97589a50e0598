/** Builds the site of the docs without a network, checks every link, and reads it in a browser. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, extname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { launchBrowser, noBrowser, openPage, violations, widths } from '../support/browser.ts'

const home = dirname(fileURLToPath(import.meta.url))
const site = await mkdtemp(join(tmpdir(), 'partner-api-site-'))
t.teardown(() => rm(site, { recursive: true, force: true }))

const PATH = `${join(home, '../node_modules/.bin')}:${process.env['PATH']}`
const build = spawn(process.execPath, [join(home, 'build.ts'), '--outDir', site], {
  env: { ...process.env, PATH },
  stdio: ['ignore', 'pipe', 'pipe'],
})
let printed = ''
for (const stream of [build.stdout, build.stderr]) stream.on('data', (chunk) => printed += chunk)
const [status] = await once(build, 'close')
t.equal(status, 0, printed)

const read = (path: string): string => readFileSync(join(site, path), 'utf8')
const pages = globSync('*.html', { cwd: site }).filter((page) => page !== '404.html').sort()

t.test('links, anchors, images and what pages load are in the site', (t) => {
  const files = new Set(globSync('**', { cwd: site }))
  const html = new Map(pages.map((page) => [page, read(page)]))
  const ids = new Map(
    Array.from(
      html,
      ([page, text]) => [page, new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => id))],
    ),
  )
  for (const [page, text] of html) {
    const missing = new Set<string>()
    for (const [, target = ''] of text.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      if (/^(https:|data:)/.test(target)) continue
      const { pathname, hash } = new URL(target, `https://site.example/${page}`)
      const path = pathname === '/' ? 'index.html' : decodeURIComponent(pathname.slice(1))
      if (!files.has(path)) missing.add(target)
      else if (hash !== '' && !ids.get(path)?.has(decodeURIComponent(hash.slice(1)))) missing.add(target)
    }
    t.strictSame([...missing], [], page)
    t.notMatch(
      text,
      /<(?:script|img|link rel="(?:style|pre))[^>]+(?:src|href)="(?:https?:)?\/\//,
      `${page} loads from other hosts`,
    )
  }
  t.end()
})

t.test('every page of the docs is in the sidebar, has neighbours, and exists as Markdown', (t) => {
  const [sidebar, index] = [read('index.html'), read('llms.txt')]
  const docs = globSync('*.md', { cwd: join(home, '../../docs') }).filter((name) => name !== 'README.md')
  const listed = readFileSync(join(home, '../../docs/README.md'), 'utf8')
  const recipes = Array.from(listed.matchAll(/partners\/(\w+)\/README/g), ([, name]) => `recipe-${name}`)
  for (const page of [...docs.map((name) => name.toLowerCase().replace('.md', '')), ...recipes]) {
    t.ok(sidebar.includes(`href="/${page}.html"`), `${page} is in the sidebar`)
    t.ok(read(`${page}.html`).includes(' pager-link '), `${page} has neighbours`)
    t.ok(index.includes(`](/${page}.md)`), `${page} is in llms.txt`)
    t.equal(read(`${page}.md`).slice(0, 2), '# ', page)
  }
  t.end()
})

t.test('the reference describes the entries of the package', (t) => {
  const entry = read('api-partner-api.md')
  t.match(entry, /### createPartnerApi\n\nCreates the service\.\n\n```ts\nfunction createPartnerApi\(/)
  t.match(entry, /- throws `RangeError`: for an invalid option/)
  t.match(entry, /### PartnerApiOptions\n.*?```ts\ninterface PartnerApiOptions \{\n.*?\n\}\n```/s)
  t.end()
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const types: Readonly<Record<string, string>> = {
    '.css': 'text/css',
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript',
    '.svg': 'image/svg+xml',
  }
  const server = createServer(({ url = '/' }, response) => {
    const path = join(
      site,
      url === '/' ? 'index.html' : decodeURIComponent(new URL(url, 'http://site').pathname),
    )
    response.setHeader('Content-Type', types[extname(path)] ?? 'text/plain; charset=utf-8')
    try {
      response.end(readFileSync(path))
    } catch {
      response.writeHead(404).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const browser = await launchBrowser()
  t.teardown(() => browser.close().then(() => server.close()))

  const screens = [
    { scheme: 'light', width: 1440, height: 900 },
    { scheme: 'dark', width: 390, height: 844 },
  ] as const
  for (const name of ['index', 'compared', 'runtimes', 'api-partner-api-client']) {
    for (const screen of screens) {
      const { page, requests, errors, close } = await openPage(browser, `${base}/${name}.html`, screen)
      const place = `${name} at ${screen.width}`
      t.strictSame(await violations(page, 'html', ['violations']), [], place)
      t.strictSame(errors, [], place)
      t.strictSame(requests.filter((url) => !url.startsWith(base)), [], place)
      const [content = 0, width = 0] = await page.evaluate<number[]>(widths)
      t.ok(content <= width, `${place} fits the screen`)
      await close()
    }
  }

  const { page, close } = await openPage(browser, `${base}/index.html`, screens[0])
  await page.locator('.DocSearch-Button').click()
  await page.locator('#localsearch-input').fill('rotate')
  await page.locator('#localsearch-list a').first().waitFor()
  await page.locator('#localsearch-list a').first().click()
  await page.waitForURL((url) => url.pathname !== '/index.html')

  await page.goto(`${base}/runtimes.html`)
  const tab = page.locator('.vp-code-group label').nth(1)
  await tab.click()
  t.match(await page.locator('.vp-code-group .blocks .active').innerText(), /Deno\.serve/)
  await close()
})

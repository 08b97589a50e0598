/** The pages that `reports --html` writes, in a browser. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import { programOn, temporaryFolder } from '../support/cli-program.ts'
import { createReportsStore, PERIOD } from '../support/reports-store.ts'
import { launchBrowser, noBrowser, openPage, violations, widths } from './browser.ts'

const folder = temporaryFolder()
const file = join(folder, 'store.db')
const { run } = programOn(`sqlite:${file}`)
await createReportsStore(file)

const screens = [
  { scheme: 'dark', width: 390, height: 844 },
  { scheme: 'light', width: 1440, height: 900 },
] as const

test('pages in a browser', { skip: noBrowser }, async (t) => {
  const browser = await launchBrowser()
  t.teardown(() => browser.close())
  const day = ['--from', '2026-02-01', '--to', '2026-02-01']
  const pages = { acme: ['acme', ...PERIOD], wide: ['wide', ...day], quiet: ['quiet'], all: PERIOD }
  for (const [name, args] of Object.entries(pages)) {
    const path = join(folder, `${name}.html`)
    t.equal((await run('reports', ...args, '--html', path)).code, 0)
    // Pages that differ in their data only: one screen.
    for (const screen of name === 'acme' || name === 'all' ? screens : screens.slice(0, 1)) {
      const { page, requests, errors, close } = await openPage(browser, pathToFileURL(path).href, screen)
      await page.evaluate(`for (const hidden of document.querySelectorAll('details')) hidden.open = true`)
      t.same(await page.evaluate(widths), [screen.width, screen.width], `${name}: no horizontal scrolling`)
      t.same(await violations(page), [], `${name}: accessible, ${screen.scheme}`)
      t.same(requests, [pathToFileURL(path).href], 'one request')
      t.same(errors, [], 'no errors, also of its content security policy')
      const charts = await page.evaluate<number[]>(
        `['svg[role=img]', 'svg[role=img] > title', 'figure details table'].map((each) => document.querySelectorAll(each).length)`,
      )
      t.same(charts, Array(3).fill(name === 'all' ? 5 : 2), 'every chart has a title and a table')
      if (name === 'acme') {
        const table = page.locator('figure').first().locator('tbody')
        t.match(await table.locator('tr').nth(1).textContent(), '2026-01-05 to 2026-01-11')
        t.equal(await table.locator('tr').count(), 53)
      }
      await close()
    }
    const html = readFileSync(path, 'utf8')
    t.notMatch(html, /<script|\p{Bidi_Control}|style=|(?:src|href)="(?!data:)/u)
    t.notMatch(html.replaceAll('\n', ''), /\p{Cc}/u)
  }
  const { page, errors, close } = await openPage(browser, pathToFileURL(join(folder, 'acme.html')).href, {
    scheme: 'light',
    width: 800,
    height: 600,
  })
  await page.evaluate(
    `document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))`,
  )
  t.equal(await page.evaluate('window.ran'), undefined, 'its policy lets no script run')
  t.match(errors.join(), 'Content Security Policy')
  await close()
})

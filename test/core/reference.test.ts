/** The reference page in a browser: it fits all screens, loads no other resource, and is accessible. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import axe from 'axe-core'
import type { AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import t from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { createServiceNames } from '../../core/http/headers.ts'
import { PROBLEMS } from '../../core/http/problem.ts'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import { createDocument } from '../../core/openapi/document.ts'
import { escapeHtml, markup, prettyJson, prose } from '../../core/openapi/html.ts'
import { createReferencePage } from '../../core/openapi/reference.ts'
import { ROUTES } from '../../core/routes/router.ts'

/** Paths of Debian, Fedora and Google; `CHROMIUM` overrides them. */
const places = [
  process.env['CHROMIUM'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
const executablePath = places.find((place) => place !== '' && existsSync(place))
/** Scripts for the page are text: the types of the DOM would add its globals to all other tests. */
const widths = '[document.documentElement.scrollWidth, innerWidth]'
/** A folder for screenshots. */
const shots = process.env['REFERENCE_SHOTS']

const screens = [
  { name: 'phone', scheme: 'dark', width: 360, height: 780 },
  { name: 'desktop', scheme: 'light', width: 1366, height: 900 },
] as const

t.test('the page escapes all text', (t) => {
  const evil = `<script>alert('"&')</script>`
  const safe = '&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;'
  t.equal(escapeHtml(evil), safe)
  t.equal(
    markup`<p title="${evil}">${[evil, [evil]]}${undefined}</p>`.html,
    `<p title="${safe}">${safe}${safe}</p>`,
  )
  t.equal(markup`${markup`<b>${1}</b>`}`.html, '<b>1</b>')
  t.equal(markup`${prose(`a \`<b>\` ${evil}`)}`.html, `a <code>&lt;b&gt;</code> ${safe}`)
  t.notMatch(markup`${prettyJson({ [evil]: [evil, 1, null] })}`.html, /<script/)
  const hostile = createReferencePage(
    {
      ...createDocument(ROUTES.map((route) => ({ ...route, summary: evil, description: evil }))),
    },
    {
      names: createServiceNames('service'),
      problemBase: evil,
      limits: DEFAULT_LIMITS,
      maxStalenessMs: 1,
      allowBrowsers: false,
    },
    () => 'ab',
  )
  t.equal(hostile.text.match(/<script/g)?.length, 1, 'the page has only its own script')
  t.end()
})

t.test('the page documents every operation and problem', (t) => {
  const described = createDocument(ROUTES)
  const { text } = createReferencePage(
    described,
    {
      names: createServiceNames('service'),
      problemBase: 'https://a.example',
      limits: DEFAULT_LIMITS,
      maxStalenessMs: 1,
      allowBrowsers: false,
    },
    () => 'ab',
  )
  const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length, 'ids are unique')
  for (const [, id] of text.matchAll(/href="#([^"]+)"/g)) {
    if (!ids.includes(id)) t.fail(`#${id} does not exist`)
  }
  for (const path of Object.keys(described.paths)) t.ok(text.includes(`<code>${path}</code>`), path)
  for (const code of Object.keys(PROBLEMS)) t.ok(ids.includes(code), code)
  const curls = [...text.matchAll(/<code id="(\w+)-curl">/g)].map(([, id]) => id)
  t.strictSame(curls, ROUTES.map(({ name }) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())))
  const headings = [...text.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level))
  t.strictSame(
    headings.filter((level, index) => level > (headings[index - 1] ?? 0) + 1),
    [],
    'headings skip no level',
  )
  t.equal(headings.filter((level) => level === 1).length, 1)
  t.notMatch(text, /\b(?:src|href)="(?:https?:)?\/\//, 'no external resource')
  t.notMatch(text, /spk_(?:live|test)_[0-9A-Za-z]{12}_/, 'no text in the format of a key')
  t.end()
})

const skip = executablePath === undefined ? 'Chromium is not installed (.ci/run installs it)' : false

t.test('in a browser', { skip }, async (t) => {
  const api = createPartnerApi({ store: createMemoryStore() })
  const server = await serve(api, { port: 0 })
  const browser = await chromium.launch({
    executablePath: executablePath ?? '',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  t.teardown(async () => {
    await browser.close()
    await server.drain()
    await api.close()
  })
  const url = `${server.url}/service/docs`

  for (const screen of screens) {
    await t.test(`${screen.name}, ${screen.scheme}`, async (t) => {
      const { page, requests, errors, close } = await open(browser, url, { screen })
      const width = await page.evaluate<number[]>(widths)
      t.strictSame(width, [screen.width, screen.width], 'no horizontal scrolling')
      if (shots !== undefined) {
        mkdirSync(shots, { recursive: true })
        await page.screenshot({ path: join(shots, `${screen.name}-${screen.scheme}.png`) })
      }
      await page.evaluate(`for (const hidden of document.querySelectorAll('details')) hidden.open = true`)
      const all = await page.evaluate<number[]>(widths)
      t.strictSame(all, [screen.width, screen.width], 'no horizontal scrolling with all details open')
      const wide = await page.evaluate<string[]>(`[...document.querySelectorAll('main *')]
        .filter((one) => one.closest('pre') === null && one.getBoundingClientRect().right > innerWidth + 0.5)
        .map((one) => one.outerHTML.slice(0, 100))`)
      t.strictSame(wide, [], 'no element overflows')
      t.strictSame(await violations(page), [])
      const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
      const [red = 0] = (background.match(/\d+/g) ?? []).map(Number)
      t.ok(screen.scheme === 'dark' ? red < 64 : red > 192, `${screen.scheme}: ${background}`)
      t.strictSame(requests, [url], 'one request')
      t.strictSame(errors, [], 'no browser errors, including its content security policy')
      await close()
    })
  }

  await t.test('code is copied by keyboard, and the page announces it', async (t) => {
    const { page, close } = await open(browser, url, {})
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const button = page.locator('.copy[data-of="profiles-curl"]')
    await button.focus()
    t.equal(
      await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle'),
      'solid',
      'focus is visible',
    )
    await page.keyboard.press('Enter')
    await page.locator('#status:text-is("Copied to the clipboard.")').waitFor({ state: 'attached' })
    t.equal(await page.locator('#status').getAttribute('role'), 'status', 'politely')
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    t.match(copied, /^curl \\\n {2}-H "X-Service-Partner-Key: \$PARTNER_API_KEY"/)
    t.ok(
      copied.includes(`${server.url}/service/public/profiles?partner=demo`),
      'the code has the host of the page',
    )
    await close()
  })

  await t.test('the keyboard can skip the contents and scroll long code', async (t) => {
    const { page, close } = await open(browser, url, {})
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate<string>('document.activeElement.className'), 'skip')
    const top = await page.evaluate<number>('document.activeElement.getBoundingClientRect().top')
    t.ok(top >= 0, 'the skip link appears')
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate<string>('location.hash'), '#main')
    const still = await page.evaluate<number>(
      `[...document.querySelectorAll('pre')].filter((one) => one.tabIndex !== 0).length`,
    )
    t.equal(still, 0)
    await page.evaluate(`location.hash = '#problems'`)
    const current = page.locator('.side [aria-current]')
    await current.and(page.locator(':text-is("Problems")')).waitFor()
    t.equal(await current.count(), 1, 'the contents highlight the current section')
    await close()
  })

  await t.test('the page is complete without scripts', async (t) => {
    const { page, close } = await open(browser, url, { script: false, screen: screens[0] })
    t.equal(await page.locator('.copy:visible').count(), 0, 'no copy buttons')
    await page.locator('.brief summary').click()
    await page.locator('.brief a[href="#signUp"]').click()
    t.ok(await page.locator('#signUp-title').isVisible())
    t.match(
      await page.locator('#signUp-curl').textContent(),
      /https:\/\/api\.example\.com\/service\/partner\/signups/,
    )
    await close()
  })
})

interface Opened {
  readonly page: Page
  readonly requests: string[]
  readonly errors: string[]
  close(): Promise<void>
}

async function open(
  browser: Browser,
  url: string,
  { screen = screens[1], script = true }: {
    readonly screen?: (typeof screens)[number]
    readonly script?: boolean
  },
): Promise<Opened> {
  const context = await browser.newContext({
    colorScheme: screen.scheme,
    viewport: { width: screen.width, height: screen.height },
    javaScriptEnabled: script,
  })
  const page = await context.newPage()
  const requests: string[] = []
  const errors: string[] = []
  page.on('request', (request) => void (request.url().startsWith('data:') || requests.push(request.url())))
  page.on('console', (message) => void errors.push(message.text()))
  page.on('pageerror', (error) => void errors.push(error.message))
  await page.goto(url, { waitUntil: 'load' })
  return { page, requests, errors, close: () => context.close() }
}

/** Violations found by axe, including best practices. The page's policy does not apply to a debugger's scripts. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const found = await page.evaluate<AxeResults>(
    `axe.run(document, { resultTypes: ['violations', 'incomplete'] })`,
  )
  return [...found.violations, ...found.incomplete].map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

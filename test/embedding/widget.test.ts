/** Runs the widget with both servers, on a service that also fails, and checks what visitors see. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { Route } from 'playwright-core'
import t from 'tap'
import { launchBrowser, noBrowser, openPage, violations, widths } from '../support/browser.ts'
import { cleanEnv } from '../support/cli-program.ts'
import { openPartnerProject, textOf } from './partner-project.ts'
import { EXAMPLES, start, write } from './project.ts'
import { HOSTILE } from './recorder.ts'

const hasPhp = spawnSync('php', ['-r', 'exit(PHP_VERSION_ID >= 80100 && extension_loaded("curl") ? 0 : 1);'])
  .status === 0
const partner = await openPartnerProject(t)
const { service, requests, see, end } = partner
const [folder, hasty] = [join(partner.folder, 'widget'), join(partner.folder, 'hasty')]
cpSync(folder, hasty, { recursive: true })
// Nothing times out on a busy machine, but what has to.
for (
  const [name, option, short] of [
    ['server.js', 'timeoutMs: 3000', 'timeoutMs: 30'],
    ['index.php', 'timeout: 3', 'timeout: 0.03'],
  ] as const
) {
  const text = readFileSync(join(folder, name), 'utf8')
  if (!text.includes(option)) throw new Error(`${name} has no ${option}`)
  write(folder, name, text.replace(option, option.replace(/\d+/, '60$&')))
  write(hasty, name, text.replace(option, short))
}
const programs = {
  node: [process.execPath, 'server.js'],
  ...(hasPhp ? { php: ['sh', '-c', 'exec php -S 127.0.0.1:$PORT index.php'] } : {}),
}
const run = (name: keyof typeof programs, url: string, cwd = folder, key = partner.key) =>
  start(t, cwd, programs[name]!, { PARTNER_API_URL: url, PARTNER_API_KEY: key })

const evil = `<script>alert(1)</script><img src=x onerror="alert('2')">{{partner.name}}$&\\1`
const link = 'javascript:alert(3)//https://'
const profile = {
  name: evil,
  headline: evil,
  country: { code: '"><b>', name: evil },
  industry: { slug: evil, name: evil },
  logo_url: link,
}
const plan = {
  name: evil,
  description: evil,
  price: { amount_minor: 123456, currency: evil, exponent: 2 },
  interval: evil,
  features: [evil],
  highlighted: true,
}
const widget = {
  partner: { name: evil },
  banner: { title: evil, body: evil, image_url: link, image_alt: evil, link_url: link, link_label: evil },
  profiles: [profile],
  countries: [profile.country],
  industries: [profile.industry],
  plans: [plan],
}
/** A service that checks nothing. */
const hostile = createServer((request, response) => {
  const page = { has_more: true, next_cursor: `"><script>${link}` }
  const body = request.url!.includes('/public/profiles') ? { data: [profile], page } : { data: widget }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
})
await once(hostile.listen(0, '127.0.0.1'), 'listening')
t.teardown(() => {
  hostile.closeAllConnections()
  hostile.close()
})
const hostileUrl = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`

async function get(url: string) {
  const response = await fetch(url)
  const html = await response.text()
  see(html, JSON.stringify([...response.headers]))
  const { status, headers } = response
  return { status, html, text: textOf(html).trim(), cache: headers.get('cache-control'), headers }
}
const lines = () => requests().map(({ line }) => line.replace('/service/', '')).sort()

const pages = [
  '/',
  '/?partner_q=bread',
  '/?partner_q=co&partner_country=US',
  '/?partner_q=%21%21',
  '/?partner_country=DEU',
  '/?partner_q=zzzz',
  '/partner-widget',
  '/partner-widget?partner_q=the',
]
const written: Record<string, string[]> = {}
const browser = noBrowser ? undefined : await launchBrowser()
t.teardown(() => browser?.close())

/** Opens a page whose images are there, or not. */
async function open(url: string, { scheme = 'light', width = 1440, script = true, images = true } = {}) {
  const screen = { scheme: scheme as 'light', width, height: 900 }
  const opened = await openPage(browser!, 'about:blank', screen, script)
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><path d="M0 0h8v8z"/></svg>'
  const image = { contentType: 'image/svg+xml', body: svg }
  const answer = (route: Route) => images ? route.fulfill(image) : route.abort()
  await opened.page.route('https://assets.example/**', answer)
  await opened.page.goto(url)
  return opened
}

for (const name of Object.keys(programs) as (keyof typeof programs)[]) {
  await t.test(name, async (t) => {
    const { url, said } = await run(name, service.url)
    t.teardown(() => see(said()))

    await t.test('renders the widget, and asks for no more than it needs', async (t) => {
      const { status, text, cache, headers } = await get(`${url}/?partner=x&limit=100&q=x&cursor=y`)
      t.equal(status, 200)
      t.equal(cache, 'public, max-age=60')
      t.match(
        headers.get('content-security-policy'),
        /^default-src 'none'; script-src 'self'; style-src 'self';/,
      )
      t.match(
        text,
        /Meet the makers .+ Find a workshop Demo partner Companies we work with .+ The newest companies/,
      )
      t.match(text, /Plans .+ Recommended 490 EUR per year .+ 12,000 JPY per month .+ 1,200 EUR once/)
      t.same(lines(), ['GET partner-widget?partner=demo'])
      await get(`${url}/partner-widget?partner_q=+bread+&partner_country=DE&partner_industry=`)
      t.same(lines(), ['GET public/profiles?partner=demo&q=bread&country=DE&limit=12'])
      for (const query of ['partner_country=DEU', `partner_q=${'b'.repeat(101)}`]) {
        const wrong = await get(`${url}/partner-widget?${query}`)
        t.equal(wrong.status, 400)
        t.equal(wrong.text, 'Please search again, with two letters or more.')
      }
      t.same(lines(), [], 'a text that is too long is not sent')
      t.equal((await get(`${url}/partner-widget?partner_q=%21%21`)).status, 400)
      t.match(await get(`${url}/?partner_q=%21%21`), {
        status: 200,
        text: /Meet .+ two letters or more\. Plans/,
      })
      for (const file of ['js', 'css']) t.equal((await get(`${url}/partner-widget.${file}`)).status, 200)
      for (const path of ['/server.js', '/../php/PartnerApi.php', '/x']) {
        t.equal((await get(url + path)).status, 404, path)
      }
      requests()
    })

    await t.test('says calmly that the service is down, or is another one', async (t) => {
      // `drip` takes as long as the time limit.
      for (const mode of ['down', ...HOSTILE.filter((mode) => mode !== 'drip')] as const) {
        service.mode = mode
        const message = /^(Partners )*The directory is not available at the moment\. .+ in a minute\.$/
        t.match(await get(url), { status: 200, text: message, cache: 'no-store' }, mode)
        t.match(await get(`${url}/partner-widget?partner_q=it`), { status: 503, text: message }, mode)
      }
      service.mode = 'pass'
      t.notOk(requests().some(({ line }) => line.includes('redirected')), 'a redirect is not followed')
    })

    await t.test('ends at its time limit', async (t) => {
      service.mode = 'drip'
      const { url } = await run(name, service.url, hasty)
      t.match(await get(`${url}/partner-widget`), { status: 503, text: 'The directory is not available' })
      requests()
      service.mode = 'pass'
    })

    const other = await run(name, hostileUrl)
    written[name] = []
    for (const origin of [url, other.url]) {
      for (const page of pages) written[name].push((await get(origin + page)).html)
    }
    requests()

    await t.test('in a browser', { skip: noBrowser }, async (t) => {
      await t.test('searches without script', async (t) => {
        const { page, close } = await open(url, { script: false })
        const cards = page.locator('.partner-results h3')
        t.equal(await cards.count(), 6)
        await page.getByLabel('Search').fill('co')
        await page.getByRole('button', { name: 'Search' }).click()
        await page.waitForURL(/\?partner_q=co&partner_country=&partner_industry=$/)
        t.equal(await cards.count(), 12)
        t.equal(await page.getByLabel('Search').inputValue(), 'co')
        const first = await cards.first().textContent()
        await page.getByRole('link', { name: 'More companies' }).click()
        await page.waitForURL(/partner_cursor=/)
        t.not(await cards.first().textContent(), first)
        await page.goto(`${url}/?partner_country=DE&partner_industry=food-and-drink`)
        t.equal(await page.getByLabel('Country').inputValue(), 'DE')
        t.equal(await page.getByLabel('Industry').inputValue(), 'food-and-drink')
        await close()
      })

      await t.test('searches in place with script', async (t) => {
        const { page, requests: sent, errors, close } = await open(url)
        const [cards, status] = [page.locator('.partner-results h3'), page.getByRole('status')]
        await page.evaluate('globalThis.stays = true')
        await page.getByLabel('Search').pressSequentially('co')
        await status.getByText('Companies that match').waitFor()
        t.equal(await cards.count(), 12)
        t.equal(new URL(page.url()).search, '?partner_q=co')
        await page.getByRole('link', { name: 'More companies' }).click()
        await cards.nth(12).waitFor()
        t.equal(
          await page.evaluate('document.activeElement.querySelectorAll("h3").length'),
          await cards.count() - 12,
        )
        await page.getByLabel('Search').fill('zzzz')
        await status.getByText('No company matches').waitFor()
        t.equal(await cards.count(), 0)
        await page.getByLabel('Search').fill('')
        await page.getByLabel('Country').selectOption('DE')
        await status.getByText('Companies that match').waitFor()
        t.match(await page.locator('.partner-facts').allTextContents(), [/Germany$/, /Germany$/])
        const count = await cards.count()
        service.mode = 'down'
        await page.getByLabel('Search').fill('bread')
        await page.getByRole('button', { name: 'Search' }).click()
        await status.getByText('cannot be searched at the moment').waitFor()
        t.equal(await cards.count(), count, 'what was found stays')
        service.mode = 'pass'
        await page.getByLabel('Search').fill('')
        await page.getByLabel('Country').selectOption('')
        await page.getByRole('button', { name: 'Search' }).click()
        await status.getByText('The newest companies').waitFor()
        t.equal(await cards.count(), 6)
        t.ok(await page.evaluate('stays'), 'the page was loaded once')
        t.notOk(
          sent.some((address) => !address.startsWith(url) && !address.startsWith('https://assets.example/')),
        )
        t.match(errors, [/503/])
        await close()
      })

      await t.test('is accessible, and fits', async (t) => {
        for (const scheme of ['light', 'dark']) {
          for (const width of [390, 1440]) {
            const { page, errors, close } = await open(url, { scheme, width })
            t.same(await violations(page), [], `${scheme} ${width}`)
            t.same(await page.evaluate<number[]>(widths), [width, width])
            t.same(errors, [])
            await close()
          }
        }
      })

      await t.test('without images, and in a page of another program', async (t) => {
        const { page, close } = await open(url, { images: false })
        await t.resolves(page.locator('partner-widget img').first().waitFor({ state: 'detached' }))
        const body = (await (await fetch(url)).text()).replace(
          /<partner-widget.+<\/partner-widget>/s,
          '<partner-widget src="/partner-widget"></partner-widget>',
        )
        await page.route(`${url}/static`, (route) => route.fulfill({ contentType: 'text/html', body }))
        await page.goto(`${url}/static`)
        await t.resolves(page.locator('.partner-results h3').nth(5).waitFor())
        await close()
      })

      await t.test('a path that looks like another host leads to none', async (t) => {
        const { page, requests: sent, close } = await open(url)
        const body = (await (await fetch(`${url}/?partner_q=co`)).text()).replace(
          ' src="/partner-widget"',
          '',
        )
        const part = (route: Route) => route.fulfill({ contentType: 'text/html', body })
        await page.route(`${url}//other.example/*`, part)
        await page.goto(`${url}//other.example/?partner_q=co`)
        await page.getByRole('link', { name: 'More companies' }).click()
        await t.resolves(page.locator('.partner-results h3').nth(12).waitFor({ timeout: 10_000 }))
        await page.getByLabel('Search').fill('bread')
        await page.getByRole('button', { name: 'Search' }).click()
        await t.resolves(page.waitForURL(/\/\/other\.example\/\?partner_q=bread$/, { timeout: 10_000 }))
        t.notOk(sent.some((address) => address.startsWith('http://other.example')))
        await close()
      })

      await t.test('hostile content is text', async (t) => {
        for (const path of ['/', '/?partner_q=evil']) {
          const { page, errors, requests: sent, close } = await open(other.url + path)
          page.on('dialog', (dialog) => t.fail(dialog.message()))
          t.equal(await page.locator('.partner-results h3').textContent(), evil)
          t.equal(await page.locator('partner-widget :is(script, img, b, [onerror])').count(), 0)
          t.equal(await page.locator('partner-widget .partner-banner a').count(), 0)
          await page.getByLabel('Search').fill('evil')
          await page.getByRole('button', { name: 'Search' }).click()
          const more = page.getByRole('link', { name: 'More companies' })
          await more.waitFor()
          t.match(await more.getAttribute('href'), /^\?[\w%&=+.*-]+$/)
          await more.click()
          await page.locator('.partner-results h3').nth(1).waitFor()
          t.same(errors, [])
          t.notOk(sent.some((address) => !address.startsWith(other.url)))
          await close()
        }
      })
    })
    requests()
  })
}

t.test('what is missing is said in one sentence', async (t) => {
  const bare = mkdtempSync(join(tmpdir(), 'partner-api-widget-'))
  t.teardown(() => rmSync(bare, { recursive: true }))
  cpSync(join(EXAMPLES, 'partners/widget'), bare, { recursive: true })
  write(bare, 'package.json', '{ "type": "module" }')
  for (
    const [cwd, reason] of [[bare, "Cannot find package '@hono"], [folder, 'PARTNER_API_KEY is not set']]
  ) {
    const { status, stderr } = spawnSync(process.execPath, ['server.js'], {
      ...{ cwd, env: cleanEnv({}), encoding: 'utf8' },
    })
    t.match([status, stderr], [1, reason])
    t.match(stderr, /^.+: README\.md says how to start\.\n$/)
  }
  if (!hasPhp) return
  const { url, said } = await run('php', service.url, folder, '')
  t.match(await get(url), { status: 503, html: '' })
  t.match(said(), 'PARTNER_API_KEY is not set: README.md says how to start.')
  t.notMatch(said(), 'Stack trace')
})

t.test('both servers write the same', { skip: !hasPhp && 'PHP is not installed' }, (t) => {
  for (const [index, html] of written['node']!.entries()) t.equal(written['php']?.[index], html)
  t.end()
})
await t.test('no page, header, URL or log holds a key', end)

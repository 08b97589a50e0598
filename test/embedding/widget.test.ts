/** Draws the widget of the block with PHP alone, from content of a service that checks nothing. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Route } from 'playwright-core'
import t from 'tap'
import { launchBrowser, noBrowser, openPage, violations, widths } from '../browser/browser.ts'
import { EXAMPLES } from './project.ts'

const folder = join(EXAMPLES, 'partners/wordpress')
const missing = spawnSync('php', ['--version']).error !== undefined && 'PHP is not installed'

const evil = `<script>alert(1)</script><img src=x onerror="alert('2')">{{partner.name}}$&\\1`
const link = 'javascript:alert(3)//https://'

/** The content of a service, in which every text and every link are these. */
function contentOf(text: string, url: string) {
  const profile = (index: number) => ({
    name: `${text} ${index}`,
    headline: text,
    country: { code: `${text} ${index}`, name: text },
    industry: { slug: `${text} ${index}`, name: text },
    logo_url: url,
  })
  const profiles = Array.from({ length: 12 }, (_, index) => profile(index))
  const plan = {
    name: text,
    description: text,
    price: { amount_minor: 123_456, currency: text, exponent: 2 },
    interval: text,
    features: [text],
    highlighted: true,
  }
  const banner = { title: text, body: text, image_url: url, image_alt: text, link_url: url, link_label: text }
  const widget = {
    partner: { name: text },
    banner,
    profiles: profiles.slice(0, 6),
    countries: profiles.slice(0, 2).map(({ country }) => country),
    industries: profiles.slice(0, 2).map(({ industry }) => industry),
    plans: [plan],
  }
  return { widget, page: { data: profiles, page: { next_cursor: `"><script>${url}` } } }
}

const hostile = contentOf(evil, link)
const friendly = contentOf('Bread', 'https://assets.example/a.svg')

/** Draws the widget for a query, as the block does. What it asks the service for is in `asked`. */
function draw(content: typeof hostile, query: string): { readonly html: string; readonly asked: unknown } {
  const code = `require '${folder}/partner-widget.php';
    ['widget' => $widget, 'page' => $page] = json_decode(stream_get_contents(STDIN), true);
    $asked = [];
    $search = function (array $query) use ($page, &$asked) {
      $asked[] = $query;
      if (($query['q'] ?? '') === '!') throw new DomainException();
      if (($query['q'] ?? '') === 'down') throw new RuntimeException('down');
      return ($query['q'] ?? '') === 'none' ? ['data' => [], 'page' => ['next_cursor' => null]] : $page;
    };
    parse_str($argv[1], $parameters);
    $html = PartnerWidget\\draw($parameters, fn() => $widget, $search, ['page_id' => '7"']);
    echo json_encode(compact('html', 'asked'));`
  const { stdout } = spawnSync('php', ['-r', code, '--', query], {
    input: JSON.stringify(content),
    encoding: 'utf8',
  })
  return JSON.parse(stdout)
}

t.test('a visitor chooses words, a country, an industry and a page, and nothing else', {
  skip: missing,
}, (t) => {
  const plain = draw(friendly, 'partner=x&limit=100&q=x&cursor=y')
  t.same(plain.asked, [])
  t.match(plain.html, /The newest companies/)
  t.match(plain.html, /<strong>1,234.56<\/strong> Bread per Bread/)
  t.match(plain.html, '<input type="hidden" name="page_id" value="7&quot;">')
  const found = draw(friendly, 'partner_q=+bread+&partner_country=DE&partner_industry=&partner_cursor[]=a')
  t.same(found.asked, [{ q: 'bread', country: 'DE', limit: 12 }])
  t.match(found.html, /Companies that match/)
  for (const query of ['partner_country=DEU', `partner_q=${'b'.repeat(101)}`]) {
    const { asked, html } = draw(friendly, query)
    t.same(asked, [], 'a text that is too long is not sent')
    t.match(html, /Please search again, with two letters or more\./)
  }
  t.match(draw(friendly, 'partner_q=%21').html, /Please search again/)
  t.match(draw(friendly, 'partner_q=none').html, /No company matches/)
  t.match(draw(friendly, 'partner_q=down').html, /The directory is not available at the moment/)
  t.end()
})

t.test('in a browser', { skip: missing || noBrowser }, async (t) => {
  const browser = await launchBrowser()
  t.teardown(() => browser.close())
  const asset = (name: string) => readFileSync(join(folder, `partner-widget.${name}`), 'utf8')
  const origin = 'http://site.example'

  /** Opens a page with the widget, and images that load or not. */
  async function open(content: typeof hostile, path: string, more: OpenOptions = {}) {
    const { scheme = 'light', width = 1440, script = true, images = true } = more
    const opened = await openPage(browser, 'about:blank', { scheme, width, height: 900 }, script)
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><path d="M0 0h8v8z"/></svg>'
    await opened.page.route(
      'https://assets.example/**',
      (route: Route) => images ? route.fulfill({ contentType: 'image/svg+xml', body: svg }) : route.abort(),
    )
    await opened.page.route(`${origin}/**`, (route: Route) => {
      const { html } = draw(content, new URL(route.request().url()).search.slice(1))
      const body = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Partners</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <link rel="icon" href="data:,"><style>${asset('css')} :root { color-scheme: light dark }
        body { background: light-dark(#fafcfb, #0b100e); color: light-dark(#0f1a16, #e9f0ec) }</style>
        <main><h1>Partners</h1>${html}</main><script>${asset('js')}</script></html>`
      return route.fulfill({ contentType: 'text/html', body })
    })
    await opened.page.goto(origin + path)
    return opened
  }

  await t.test('it searches without script', async (t) => {
    const { page, close } = await open(friendly, '/', { script: false })
    const cards = page.locator('.partner-results h3')
    t.equal(await cards.count(), 6)
    await page.getByLabel('Search').fill('co')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.waitForURL(/\?page_id=7%22&partner_q=co&partner_country=&partner_industry=$/)
    t.equal(await cards.count(), 12)
    t.equal(await page.getByLabel('Search').inputValue(), 'co')
    await page.getByRole('link', { name: 'More companies' }).click()
    await page.waitForURL(/partner_cursor=/)
    await close()
  })

  await t.test('it searches in place with script', async (t) => {
    const { page, requests, errors, close } = await open(friendly, '/')
    const cards = page.locator('.partner-results h3')
    const status = page.getByRole('status')
    await page.evaluate('globalThis.stays = true')
    await page.getByLabel('Search').pressSequentially('co')
    await status.getByText('Companies that match').waitFor()
    t.equal(await cards.count(), 12)
    t.equal(new URL(page.url()).search, '?page_id=7%22&partner_q=co')
    await page.getByRole('link', { name: 'More companies' }).click()
    await cards.nth(23).waitFor()
    t.equal(await page.evaluate('document.activeElement.querySelectorAll("h3").length'), 12)
    await page.getByLabel('Search').fill('none')
    await status.getByText('No company matches').waitFor()
    t.equal(await cards.count(), 0)
    await page.getByLabel('Search').fill('')
    await status.getByText('The newest companies').waitFor()
    t.equal(await cards.count(), 6)
    await page.unroute(`${origin}/**`)
    await page.route(`${origin}/**`, (route: Route) => route.fulfill({ status: 503, body: '' }))
    await page.getByLabel('Search').fill('bread')
    await status.getByText('cannot be searched at the moment').waitFor()
    t.equal(await cards.count(), 6, 'what was found stays')
    t.ok(await page.evaluate('stays'), 'the page was loaded once')
    t.notOk(requests.some((url) => !url.startsWith(origin) && !url.startsWith('https://assets.example/')))
    t.match(errors, [/503/])
    await close()
  })

  await t.test('it is accessible, and fits', async (t) => {
    for (const scheme of ['light', 'dark'] as const) {
      for (const width of [390, 1440]) {
        const { page, errors, close } = await open(friendly, '/', { scheme, width })
        t.same(await violations(page), [], `${scheme} ${width}`)
        t.same(await page.evaluate<number[]>(widths), [width, width])
        t.same(errors, [])
        await close()
      }
    }
  })

  await t.test('images that do not load leave', async (t) => {
    const { page, close } = await open(friendly, '/', { images: false })
    await t.resolves(page.locator('partner-widget img').first().waitFor({ state: 'detached' }))
    await close()
  })

  await t.test('a path that looks like another host leads to none', async (t) => {
    const { page, requests, close } = await open(friendly, '//other.example/?partner_q=co')
    await page.getByRole('link', { name: 'More companies' }).click()
    await t.resolves(page.locator('.partner-results h3').nth(12).waitFor({ timeout: 10_000 }))
    await page.getByLabel('Search').fill('bread')
    await page.getByRole('button', { name: 'Search' }).click()
    await t.resolves(
      page.waitForURL(/\/\/other\.example\/\?page_id=7%22&partner_q=bread$/, { timeout: 10_000 }),
    )
    t.notOk(requests.some((url) => url.startsWith('http://other.example')))
    await close()
  })

  await t.test('hostile content is text', async (t) => {
    for (const path of ['/', '/?partner_q=evil']) {
      const { page, errors, requests, close } = await open(hostile, path)
      page.on('dialog', (dialog) => t.fail(dialog.message()))
      t.equal(await page.locator('.partner-results h3').first().textContent(), `${evil} 0`)
      t.equal(await page.locator('partner-widget :is(script, img, b, [onerror])').count(), 0)
      t.equal(await page.locator('partner-widget .partner-banner a').count(), 0)
      await page.getByLabel('Search').fill('evil')
      await page.getByRole('button', { name: 'Search' }).click()
      const more = page.getByRole('link', { name: 'More companies' })
      await more.waitFor()
      t.match(await more.getAttribute('href'), /^\?[\w%&=+.*-]+$/)
      await more.click()
      await page.locator('.partner-results h3').nth(12).waitFor()
      t.same(errors, [])
      t.notOk(requests.some((url) => !url.startsWith(origin)))
      await close()
    }
  })
})

interface OpenOptions {
  readonly scheme?: 'light' | 'dark'
  readonly width?: number
  readonly script?: boolean
  readonly images?: boolean
}

/** The page of a one-time link in a browser: accessible, on phones and in dark mode, with and without its script. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { createClaim } from '../../core/admin/claims.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { launchBrowser, noBrowser, openPage, violations, widths } from './browser.ts'
import { openMemoryStore } from '../support/memory-store.ts'

/** A folder for screenshots. */
const shots = process.env['CLAIM_SHOTS']

const operator = { actor: 'grace' }
const name = 'A plugin with a name as long as names may be: '.padEnd(200, 'x')

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const store = await openMemoryStore()
  const partners = createPartnerAdministration(store, operator)
  await partners.create({
    slug: 'acme',
    name: 'Acme',
    modules: ['widget', 'profiles', 'banner'],
  })
  const api = createPartnerApi({ store })
  const server = await serve(api, { port: 0 })
  const browser = await launchBrowser()
  t.teardown(async () => {
    await browser.close()
    await server.close()
    await api.close()
  })
  const newLink = async () => {
    const newKey = { partner: 'acme', name, environment: 'live' } as const
    return `${server.url}/service/claim/${(await createClaim(store, operator, newKey, 3_600_000)).token}`
  }

  for (const width of [390, 1440]) {
    for (const scheme of ['light', 'dark'] as const) {
      await t.test(`${width}, ${scheme}`, async (t) => {
        const url = await newLink()
        const { page, requests, errors, close } = await openPage(browser, url, {
          scheme,
          width,
          height: 900,
        })
        const check = async (step: string) => {
          t.strictSame(
            await page.evaluate(widths),
            [width, width],
            `${step}: no horizontal scrolling`,
          )
          t.strictSame(await violations(page), [], step)
          if (shots === undefined) return
          mkdirSync(shots, { recursive: true })
          await page.screenshot({
            path: join(shots, `claim-${width}-${scheme}${step}.png`),
            fullPage: true,
          })
        }
        await check('-offer')
        await page.getByRole('button').click()
        await page.getByRole('heading', { name: 'Your API key' }).waitFor()
        await check('')
        const key = await page.locator('#key').textContent() ?? ''
        await page.getByRole('button', { name: 'Copy' }).click()
        await page.getByRole('status').filter({ hasText: /copied|selected/i })
          .waitFor()
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('link', { name: 'Download' }).click(),
        ])
        t.equal(download.suggestedFilename(), `${key.slice(9, 21)}.key`)
        t.equal(readFileSync(await download.path(), 'utf8'), `${key}\n`)
        await page.goto(url)
        await page.getByRole('heading', { name: 'This link gives no key' }).waitFor()
        await check('-spent')
        t.match(errors.splice(0), [/410/], 'the status, and nothing else')
        t.strictSame(errors, [], 'the policy allows the style and the script')
        t.strictSame(
          requests.filter((one) => one !== url),
          [],
          'nothing else is requested',
        )
        await close()
      })
    }
  }

  await t.test('a second click sends nothing', async (t) => {
    const url = await newLink()
    const { page, requests, close } = await openPage(browser, url, {
      scheme: 'light',
      width: 390,
      height: 844,
    })
    const released = Promise.withResolvers<void>()
    await page.route(url, (route) => released.promise.then(() => route.continue()).catch(() => undefined))
    const sent = page.waitForRequest(url)
    const { x, y } = (await page.getByRole('button').boundingBox())!
    // A locator would wait for the next page.
    const click = () => page.mouse.click(x + 9, y + 9)
    await click()
    await sent
    await click()
    released.resolve()
    await page.getByRole('heading', { name: 'Your API key' }).waitFor()
    t.strictSame(requests, [url, url], 'the page, and one POST')
    await close()
  })

  await t.test('without its script', async (t) => {
    const { page, close } = await openPage(
      browser,
      await newLink(),
      { scheme: 'light', width: 390, height: 844 },
      false,
    )
    await page.getByRole('button').click()
    await page.getByText(/^spk_live_\w+$/).waitFor()
    t.equal(
      await page.getByRole('button').count(),
      0,
      'no button that does nothing',
    )
    t.equal(await page.getByRole('link', { name: 'Download' }).count(), 1)
    await close()
  })
})

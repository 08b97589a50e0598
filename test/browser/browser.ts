/** Pages in Chromium: what they request, report and violate. */
import { existsSync } from 'node:fs'
import process from 'node:process'
import axe from 'axe-core'
import type { AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

/** Paths of Debian, Fedora and Google; `CHROMIUM` overrides them. */
const places = [
  process.env['CHROMIUM'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
const executablePath = places.find((place) => place !== '' && existsSync(place))

/** Why pages cannot be tested on this machine, for `skip`. */
export const noBrowser: string | false = executablePath === undefined
  ? 'Chromium is not installed (.ci/run installs it)'
  : false

/** The widths of the page and of the screen. Scripts for pages are text: the DOM's types would be in all other tests. */
export const widths = '[document.documentElement.scrollWidth, innerWidth]'

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
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
}

export interface Screen {
  readonly scheme: 'light' | 'dark'
  readonly width: number
  readonly height: number
}

export interface Opened {
  readonly page: Page
  readonly requests: string[]
  /** What the console shows, such as violations of the content security policy. */
  readonly errors: string[]
  close(): Promise<void>
}

export async function openPage(
  browser: Browser,
  url: string,
  screen: Screen,
  script = true,
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

/**
 * Violations found by axe, including best practices. The page's policy does not apply to a debugger's scripts.
 *
 * @param kinds `incomplete` is what axe cannot decide, such as the contrast of text that is scrolled out of view.
 */
export async function violations(
  page: Page,
  part = 'html',
  kinds: readonly ('violations' | 'incomplete')[] = ['violations', 'incomplete'],
): Promise<string[]> {
  await page.evaluate(axe.source)
  const found = await page.evaluate<AxeResults>(
    `axe.run('${part}', { resultTypes: ${JSON.stringify(kinds)} })`,
  )
  return kinds.flatMap((kind) => found[kind]).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

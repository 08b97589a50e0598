/** Section 4: a banner is shown between its dates, which take effect without a request or a write. */
import { expectProblem } from './expect.ts'
import {
  before,
  get,
  type Service,
  type Suite,
  type TestContext,
  type TestResponse,
  until,
} from './service.ts'

export const banner: readonly Suite[] = [{
  tests: {
    'a banner has all imported members, and null for absent ones': members,
    'a banner is shown only between its dates': dates,
    'a banner appears and ends at its dates while the service runs': datesAtRuntime,
  },
}]

/** Creates a partner with a banner. @returns Requests the banner, or another path. */
async function withBanner(
  service: Service,
  slug: string,
  line: object | undefined,
): Promise<(path?: string) => Promise<TestResponse>> {
  const { world } = service
  await world.partners.create({ slug, name: slug, modules: ['banner', 'widget'] })
  const key = await world.issue({ partner: slug })
  if (line !== undefined) await world.publish('banners', [{ partner: slug, ...line }])
  return (path = '/public/banner') => get(service, `${path}?partner=${slug}`, { key })
}

async function members(t: TestContext, service: Service): Promise<void> {
  const { banners } = service.world.lines
  const { partner: _, ...line } = banners.find(({ partner }) => partner === 'demo') ?? {}
  const updatedAt = new Date(service.world.importedAt).toISOString()
  const response = await get(service, '/public/banner?partner=demo')
  t.strictSame(
    [response.status, response.json],
    [200, { data: { ...line, updated_at: updatedAt } }],
    'as it was imported',
  )

  const bare = await (await withBanner(service, 'bare-banner', { title: 'Bare' }))()
  const { updated_at: at, ...rest } = bare.json.data
  const none = { body: null, image_url: null, image_alt: null, link_url: null, link_label: null }
  t.strictSame(rest, { title: 'Bare', ...none, starts_at: null, ends_at: null }, 'absent members are null')
  t.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, 'updated_at')
}

async function dates(t: TestContext, service: Service): Promise<void> {
  const hour = 3_600_000
  const at = (offset: number): string => new Date(Date.now() + offset).toISOString()
  const cases: readonly [string, object | undefined, boolean][] = [
    ['none-at-all', undefined, false],
    ['not-yet', { title: 'x', starts_at: at(hour) }, false],
    ['over', { title: 'x', ends_at: at(-hour) }, false],
    ['long-over', { title: 'x', starts_at: at(-2 * hour), ends_at: at(-hour) }, false],
    ['current', { title: 'x', starts_at: at(-hour), ends_at: at(hour) }, true],
    ['begun', { title: 'x', starts_at: at(-hour) }, true],
    ['ending', { title: 'x', ends_at: at(hour) }, true],
  ]
  for (const [slug, line, shows] of cases) {
    const response = await (await withBanner(service, slug, line))()
    if (shows) t.equal(response.json?.data?.title, 'x', slug)
    else {expectProblem(t, response, 'banner_not_found', slug, {
        instance: `${service.root}/public/banner`,
      })}
  }
}

async function datesAtRuntime(t: TestContext, service: Service): Promise<void> {
  const instant = (at: number): string => new Date(at).toISOString()
  const start = await before(async (at, attempt) => {
    const request = await withBanner(service, `starting-${attempt}`, { title: 'x', starts_at: instant(at) })
    // A second response is cached.
    const widgets = [await request('/partner-widget'), await request('/partner-widget')]
    return { request, widgets, response: await request() }
  })
  t.strictSame(start.observed.widgets.map(({ json }) => json.data.banner), [null, null], 'the widget before')
  expectProblem(t, start.observed.response, 'banner_not_found', 'before its dates')
  const shown = await until(start.observed.request, ({ status }) => status === 200, Date.now)
  t.ok(Date.now() >= start.at, 'the banner does not appear early')
  t.ok(shown.lastBefore < start.at, 'the banner does not appear late')
  const widget = await start.observed.request('/partner-widget')
  t.ok(widget.json.data.banner !== null, 'the widget has the banner')

  const end = await before(async (at, attempt) => {
    const request = await withBanner(service, `ending-soon-${attempt}`, { title: 'x', ends_at: instant(at) })
    return { request, response: await request() }
  })
  t.equal(end.observed.response.status, 200, 'between its dates')
  const over = await until(end.observed.request, ({ status }) => status !== 200, Date.now)
  t.ok(Date.now() >= end.at, 'the banner does not end early')
  t.ok(over.lastBefore < end.at, 'the banner does not end late')
  expectProblem(t, over.response, 'banner_not_found', 'after its dates')
}

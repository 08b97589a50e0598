/** Section 4: a banner shows in its dates, which need no request and no write to come. */
import { expectProblem } from './expect.ts'
import { type Deploy, get, type Heard, type Service, type Tester, until } from './service.ts'

export async function banner(t: Tester, deploy: Deploy): Promise<void> {
  await deploy({}, async (service) => {
    await t.test('all fields', (t) => fields(t, service))
    await t.test('dates', (t) => dates(t, service))
    await t.test('dates that come while the service runs', (t) => turning(t, service))
  })
}

/** A partner of its own, and its banner. */
async function withBanner(
  service: Service,
  slug: string,
  line: object | undefined,
): Promise<() => Promise<Heard>> {
  const { world } = service
  await world.partners.create({ slug, name: slug, modules: ['banner', 'widget'] })
  const key = await world.issue({ partner: slug })
  if (line !== undefined) await world.publish('banners', [{ partner: slug, ...line }])
  return () => get(service, `/public/banner?partner=${slug}`, { key })
}

async function fields(t: Tester, service: Service): Promise<void> {
  const { banners } = service.world.lines
  const { partner: _, ...line } = banners.find(({ partner }) => partner === 'demo') ?? {}
  const updatedAt = new Date(service.world.importedAt).toISOString()
  const heard = await get(service, '/public/banner?partner=demo')
  t.strictSame(
    [heard.status, heard.json],
    [200, { data: { ...line, updated_at: updatedAt } }],
    'as it was imported',
  )

  const bare = await (await withBanner(service, 'bare-banner', { title: 'Bare' }))()
  const { updated_at: at, ...rest } = bare.json.data
  const none = { body: null, image_url: null, image_alt: null, link_url: null, link_label: null }
  t.strictSame(rest, { title: 'Bare', ...none, starts_at: null, ends_at: null }, 'explicit nulls')
  t.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, 'updated_at')
}

async function dates(t: Tester, service: Service): Promise<void> {
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
    const heard = await (await withBanner(service, slug, line))()
    if (shows) t.equal(heard.json?.data?.title, 'x', slug)
    else expectProblem(t, heard, 'banner_not_found', slug, { instance: `${service.root}/public/banner` })
  }
}

async function turning(t: Tester, service: Service): Promise<void> {
  const [startsAt, endsAt] = [Date.now() + 400, Date.now() + 800]
  const line = {
    title: 'x',
    starts_at: new Date(startsAt).toISOString(),
    ends_at: new Date(endsAt).toISOString(),
  }
  const ask = await withBanner(service, 'turning', line)
  expectProblem(t, await ask(), 'banner_not_found', 'before its dates')
  const shown = await until(ask, ({ status }) => status === 200, 5_000, Date.now)
  t.ok(Date.now() >= startsAt, 'it does not show early')
  t.ok(shown.lastBefore < startsAt, 'nor late')
  const widget = await get(service, '/partner-widget?partner=turning', {
    key: await service.world.issue({ partner: 'turning' }),
  })
  t.ok(widget.json.data.banner !== null || Date.now() >= endsAt, 'the widget has it, too')
  const over = await until(ask, ({ status }) => status !== 200, 5_000, Date.now)
  t.ok(Date.now() >= endsAt, 'it does not end early')
  t.ok(over.lastBefore < endsAt, 'nor late')
  expectProblem(t, over.heard, 'banner_not_found', 'after its dates')
}

/** Section 4: partners see exactly the profiles in `P`, with all members. */
import { comparable, expectInvalid, expectProblem } from './expect.ts'
import type { ProfileLine } from '../../support/world.ts'
import { card, countriesInUse, detail, industries, newestFirst, plans, publicSet } from './oracle.ts'
import { get, type Service, type Suite, type TestContext, type TestResponse } from './service.ts'

export const visibility: readonly Suite[] = [{
  tests: {
    'each profile in P has all members': visibleProfiles,
    'a profile outside P is indistinguishable from a missing one': invisibleProfiles,
    'the widget combines the responses of the other endpoints': widgetParts,
    'the widget needs no other module': widgetAlone,
  },
}, {
  changesContent: true,
  tests: { 'a withdrawn profile disappears from endpoints and counts': withdrawnProfile },
}]

async function visibleProfiles(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const expectDetail = async (line: ProfileLine, partner: 'demo' | 'acme'): Promise<void> => {
    const path = `/public/profiles/${line.slug}?partner=${partner}`
    const { json } = await get(service, path, { key: world.keys[`${partner} full`] })
    t.strictSame(json, { data: detail(line, world) }, `${line.slug} for ${partner}`)
  }
  for (const line of publicSet(world.lines, 'demo')) await expectDetail(line, 'demo')
  const shared = publicSet(world.lines, 'acme').filter((line) => Array.isArray(line.visible_to))
  for (const line of shared) await expectDetail(line, 'acme')
  for (const name of ['limit', 'q', 'fields', 'locale']) {
    expectInvalid(
      t,
      await get(service, `/public/profiles/bare?partner=demo&${name}=1`),
      [name],
      `no parameter ${name}`,
    )
  }
}

/** A response without the differences between two missing slugs. */
function anonymous(response: TestResponse, slug: string): unknown {
  return JSON.parse(JSON.stringify(comparable(response)).replaceAll(slug, 'SLUG'))
}

async function invisibleProfiles(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme'] as const) {
    const key = world.keys[`${partner} full`]
    const request = (slug: string, method = 'GET') =>
      get(service, `/public/profiles/${slug}?partner=${partner}`, { key, method })
    const unknown = await request('no-such-profile')
    const instance = `${service.root}/public/profiles/no-such-profile`
    expectProblem(t, unknown, 'profile_not_found', 'a slug that does not exist', { instance })
    const visible = new Set(publicSet(world.lines, partner).map(({ slug }) => slug))
    const outside = world.lines.profiles.map(({ slug }) => slug).filter((slug) => !visible.has(slug))
    t.ok(outside.length >= 7, 'drafts, future profiles and those of other partners')
    for (const slug of outside) {
      const response = await request(slug)
      const expected = anonymous(unknown, 'no-such-profile')
      t.strictSame(anonymous(response, slug), expected, `${slug} gets the response of a missing slug`)
      const added = slug.length - 'no-such-profile'.length
      t.equal(
        response.body.length,
        unknown.body.length + added,
        'the length differs by that of the slug only',
      )
      t.equal((await request(slug, 'HEAD')).status, 404, 'HEAD gets 404 too')
    }
    const lists = [
      '/public/profiles/recent?limit=50&',
      '/public/profiles?limit=100&',
      '/public/profiles?limit=100&sort=-published_at&',
      '/public/profiles?limit=100&country=TV&country=MT&country=GB&',
      '/public/profiles?limit=100&industry=tied-a&industry=tied-b&',
      '/partner-widget?',
    ]
    for (const path of lists) {
      const { text, status } = await get(service, `${path}partner=${partner}`, { key })
      const seen = outside.filter((slug) => text.includes(`"${slug}"`))
      t.strictSame([status, seen], [200, []], `${path} contains none of them`)
    }
  }
}

async function withdrawnProfile(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const line = world.lines.profiles.find(({ slug }) => slug === 'larkspur-and-vane')
  const request = () => get(service, '/public/profiles/larkspur-and-vane?partner=demo')
  const count = async (): Promise<unknown> =>
    (await get(service, '/public/countries?partner=demo&in_use=true')).json.data
      .find(({ code }: { code: string }) => code === 'US').profile_count
  const before = Number(await count())
  const later = '2098-01-01T00:00:00.000Z'
  for (const change of [{ published_at: null }, { visible_to: ['acme'] }, { published_at: later }]) {
    await world.publish('profiles', [{ ...line, ...change }])
    t.strictSame([(await request()).status, await count()], [404, before - 1], JSON.stringify(change))
    await world.publish('profiles', [{ ...line, visible_to: ['acme', 'demo'] }])
    t.strictSame([(await request()).status, await count()], [200, before], 'the profile is visible again')
  }
  await world.remove('profiles', ['larkspur-and-vane'])
  t.strictSame([(await request()).status, await count()], [404, before - 1], 'removed')
  const now = await world.publish('profiles', [line ?? {}])
  t.equal((await request()).json.data.updated_at, new Date(now).toISOString(), 'imported again')
}

async function widgetParts(t: TestContext, service: Service): Promise<void> {
  const data = async (path: string) => (await get(service, path)).json.data
  const widget = await data('/partner-widget?partner=demo')
  t.strictSame(widget, {
    partner: { slug: 'demo', name: 'Demo partner' },
    banner: await data('/public/banner?partner=demo'),
    profiles: await data('/public/profiles/recent?partner=demo&limit=6'),
    countries: await data('/public/countries?partner=demo&in_use=true'),
    industries: await data('/public/industries?partner=demo&in_use=true'),
    plans: await data('/public/plans?partner=demo'),
  }, 'each part equals the response of its endpoint')
  t.ok(widget.banner !== null, 'with a banner')
  for (const name of ['limit', 'locale', 'in_use']) {
    expectInvalid(
      t,
      await get(service, `/partner-widget?partner=demo&${name}=1`),
      [name],
      `no parameter ${name}`,
    )
  }
}

async function widgetAlone(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const { data } = (await get(service, '/partner-widget?partner=kiosk', {
    key: world.keys['kiosk full'],
  })).json
  const newest = newestFirst(publicSet(world.lines, 'kiosk')).slice(0, 6)
  t.strictSame(data.partner, { slug: 'kiosk', name: 'Kiosk' })
  t.equal(data.banner, null, 'no banner')
  t.strictSame(data.profiles, newest.map((line) => card(line, world)), 'the six newest profiles')
  t.strictSame(data.countries, countriesInUse(world, 'kiosk'), 'countries')
  const used = industries(world, 'kiosk').filter(({ profile_count: count }) => count !== 0)
  t.strictSame(data.industries, used, 'industries')
  t.strictSame(data.plans, plans(world), 'plans')
}

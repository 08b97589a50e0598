/** Section 4: nothing outside of `P` ever shows. And what does show, field by field. */
import { comparable, expectInvalid, expectProblem } from './expect.ts'
import type { ProfileLine } from '../../support/world.ts'
import { card, countriesInUse, detail, industries, newestFirst, plans, publicSet } from './oracle.ts'
import { get, type Heard, type Service, type Suite, type Tester } from './service.ts'

export const visibility: readonly Suite[] = [{
  tests: {
    'every profile of P in full': details,
    'a profile that is not in P does not exist': hidden,
    'the widget has the parts of the other endpoints': parts,
    'the widget of a partner with no other module': alone,
  },
}, { changesContent: true, tests: { 'a profile that is withdrawn': withdrawn } }]

async function details(t: Tester, service: Service): Promise<void> {
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
    expectInvalid(t, await get(service, `/public/profiles/bare?partner=demo&${name}=1`), [name], `no ${name}`)
  }
}

/** An answer without what may differ between two slugs that do not exist. */
function anonymous(heard: Heard, slug: string): unknown {
  return JSON.parse(JSON.stringify(comparable(heard)).replaceAll(slug, 'SLUG'))
}

async function hidden(t: Tester, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme'] as const) {
    const key = world.keys[`${partner} full`]
    const ask = (slug: string, method = 'GET') =>
      get(service, `/public/profiles/${slug}?partner=${partner}`, { key, method })
    const unknown = await ask('no-such-profile')
    const instance = `${service.root}/public/profiles/no-such-profile`
    expectProblem(t, unknown, 'profile_not_found', 'a slug that does not exist', { instance })
    const visible = new Set(publicSet(world.lines, partner).map(({ slug }) => slug))
    const outside = world.lines.profiles.map(({ slug }) => slug).filter((slug) => !visible.has(slug))
    t.ok(outside.length >= 7, 'drafts, future ones, those of others and of unknown')
    for (const slug of outside) {
      const heard = await ask(slug)
      const expected = anonymous(unknown, 'no-such-profile')
      t.strictSame(anonymous(heard, slug), expected, `${slug} is answered like a slug that does not exist`)
      const added = slug.length - 'no-such-profile'.length
      t.equal(heard.body.length, unknown.body.length + added, 'to the byte')
      t.equal((await ask(slug, 'HEAD')).status, 404, 'HEAD tells no more')
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
      t.strictSame([status, seen], [200, []], `${path} shows none of them`)
    }
  }
}

async function withdrawn(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const line = world.lines.profiles.find(({ slug }) => slug === 'larkspur-and-vane')
  const ask = () => get(service, '/public/profiles/larkspur-and-vane?partner=demo')
  const count = async (): Promise<unknown> =>
    (await get(service, '/public/countries?partner=demo&in_use=true')).json.data
      .find(({ code }: { code: string }) => code === 'US').profile_count
  const before = Number(await count())
  const later = '2098-01-01T00:00:00.000Z'
  for (const change of [{ published_at: null }, { visible_to: ['acme'] }, { published_at: later }]) {
    await world.publish('profiles', [{ ...line, ...change }])
    t.strictSame([(await ask()).status, await count()], [404, before - 1], JSON.stringify(change))
    await world.publish('profiles', [{ ...line, visible_to: ['acme', 'demo'] }])
    t.strictSame([(await ask()).status, await count()], [200, before], 'and back')
  }
  await world.remove('profiles', ['larkspur-and-vane'])
  t.strictSame([(await ask()).status, await count()], [404, before - 1], 'removed')
  const now = await world.publish('profiles', [line ?? {}])
  t.equal((await ask()).json.data.updated_at, new Date(now).toISOString(), 'imported again')
}

async function parts(t: Tester, service: Service): Promise<void> {
  const data = async (path: string) => (await get(service, path)).json.data
  const widget = await data('/partner-widget?partner=demo')
  t.strictSame(widget, {
    partner: { slug: 'demo', name: 'Demo partner' },
    banner: await data('/public/banner?partner=demo'),
    profiles: await data('/public/profiles/recent?partner=demo&limit=6'),
    countries: await data('/public/countries?partner=demo&in_use=true'),
    industries: await data('/public/industries?partner=demo&in_use=true'),
    plans: await data('/public/plans?partner=demo'),
  }, 'each part is what its own endpoint answers')
  t.ok(widget.banner !== null, 'with a banner')
  for (const name of ['limit', 'locale', 'in_use']) {
    expectInvalid(t, await get(service, `/partner-widget?partner=demo&${name}=1`), [name], `no ${name}`)
  }
}

async function alone(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const { data } = (await get(service, '/partner-widget?partner=kiosk', {
    key: world.keys['kiosk full'],
  })).json
  const newest = newestFirst(publicSet(world.lines, 'kiosk')).slice(0, 6)
  t.strictSame(data.partner, { slug: 'kiosk', name: 'Kiosk' })
  t.equal(data.banner, null, 'without a banner')
  t.strictSame(data.profiles, newest.map((line) => card(line, world)), 'six newest')
  t.strictSame(data.countries, countriesInUse(world, 'kiosk'), 'countries')
  const used = industries(world, 'kiosk').filter(({ profile_count: count }) => count !== 0)
  t.strictSame(data.industries, used, 'industries')
  t.strictSame(data.plans, plans(world), 'plans')
}

/** Embedding with public exports only: everything is imported from the entries of the package. */
import { test } from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import {
  AdminError,
  checkDirectory,
  compareCodePoints,
  createKeyAdministration,
  createPartnerAdministration,
  createPartnerApi,
  type Directory,
  directoryOf,
  fold,
  foldWords,
  importContent,
  MODULE_NAMES,
  type PartnerApi,
  Problem,
  type Profile,
  type Store,
} from '../../core/mod.ts'

const actor = 'embedder'

/** A partner with every module, and the text of a key of its own. */
async function admit(store: Store): Promise<string> {
  await createPartnerAdministration(store, { actor })
    .create({ slug: 'acme', name: 'Acme Travel', modules: MODULE_NAMES })
  const { text } = await createKeyAdministration(store, { actor })
    .issue({ partner: 'acme', name: 'Website', environment: 'live' })
  return text
}

async function read(api: PartnerApi, key: string, path: string) {
  const answer = await api.fetch(
    new Request(`https://api.example/service${path}`, { headers: { 'X-Service-Partner-Key': key } }),
  )
  return { status: answer.status, body: await answer.json() }
}

test('a memory store is filled and served', async (t) => {
  const store = createMemoryStore()
  const key = await admit(store)
  const options = { now: Date.now(), actor }
  const refused = await importContent(store, 'profiles', ['{"slug":"old-mill"}'], options)
  t.match(refused, { errors: [{ line: 1, field: 'name' }] })
  await importContent(store, 'industries', ['{"slug":"travel","name":"Travel"}'], options)
  const profile = {
    slug: 'old-mill',
    name: 'Old Mill',
    headline: 'Beds above the wheel',
    country: 'DE',
    industry: 'travel',
    published_at: '2026-01-01T00:00:00Z',
  }
  const report = await importContent(store, 'profiles', [JSON.stringify(profile)], options)
  t.match(report, { created: 1 })

  const api = createPartnerApi({ store })
  const { status, body } = await read(api, key, '/public/profiles?partner=acme&q=mill')
  t.equal(status, 200)
  t.match(body.data, [{ slug: 'old-mill', country: { code: 'DE' } }])
  await t.rejects(admit(store), { constructor: AdminError, code: 'partner_exists' })
  await api.close()
})

/** Profiles in a table of the embedder. */
function ownDirectory(rows: readonly Profile[]): Directory {
  const keyOf = ({ name }: Profile) => fold(name)
  return {
    listProfiles(_partner, { words, countries, industries, after, limit }, now) {
      return rows
        .filter((row) => row.publishedAt <= now)
        .filter(({ country }) => countries.length === 0 || countries.includes(country))
        .filter(({ industry }) => industries.length === 0 || industries.includes(industry.slug))
        .filter(({ name, headline }) =>
          words.every((word) => foldWords(`${name} ${headline}`).some((one) => one.startsWith(word)))
        )
        .sort((a, b) => compareCodePoints(keyOf(a), keyOf(b)) || compareCodePoints(a.slug, b.slug))
        .filter((row) =>
          after === undefined ||
          (compareCodePoints(keyOf(row), String(after.key)) || compareCodePoints(row.slug, after.slug)) > 0
        )
        .slice(0, limit)
    },
    findProfile(_partner, slug, now) {
      if (slug === 'broken') throw new Problem('store_unavailable')
      return rows.find((row) => row.slug === slug && row.publishedAt <= now)
    },
    countProfiles: (_partner, by) =>
      new Map(
        Map.groupBy(rows, (row) => by === 'country' ? row.country : row.industry.slug)
          .entries().map(([name, members]) => [name, members.length]),
      ),
    listIndustries: () => [{ slug: 'travel', name: 'Travel', parentSlug: undefined }],
    nextProfileChangeAt: () => undefined,
  }
}

function profileNamed(name: string): Profile {
  const slug = foldWords(name).join('-')
  return {
    slug,
    name,
    headline: 'Slow journeys',
    country: 'SE',
    industry: { slug: 'travel', name: 'Travel' },
    logoUrl: undefined,
    publishedAt: 0,
    updatedAt: 0,
    description: undefined,
    websiteUrl: undefined,
    city: undefined,
    foundedYear: undefined,
    employees: undefined,
    tags: [],
    contact: undefined,
    links: [],
  }
}

test("profiles come from a directory of the embedder's own", async (t) => {
  const store = createMemoryStore()
  const key = await admit(store)
  const directory = ownDirectory(['Östra Resor', 'Opal', 'Łódź Reisen'].map(profileNamed))
  const api = createPartnerApi({ store, directory })
  const names: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const path = `/public/profiles?partner=acme&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`
    const { status, body } = await read(api, key, path)
    t.equal(status, 200)
    names.push(body.data[0].name)
    cursor = body.page.next_cursor
  }
  t.same(names, ['Łódź Reisen', 'Opal', 'Östra Resor'])
  t.match((await read(api, key, '/public/profiles/opal?partner=acme')).body, { data: { name: 'Opal' } })
  t.match(await read(api, key, '/public/profiles/broken?partner=acme'), {
    status: 503,
    body: { code: 'store_unavailable' },
  })
  t.match((await read(api, key, '/public/countries?partner=acme&in_use=true')).body, {
    data: [{ code: 'SE', profile_count: 3 }],
  })
  await api.close()
})

test('a directory of a list satisfies the directory contract', async (t) => {
  const store = createMemoryStore()
  const key = await admit(store)
  const travel = { slug: 'travel', name: 'Travel' }
  const row = (name: string, more: Partial<Profile> = {}) => {
    const slug = foldWords(name).join('-')
    return { slug, name, headline: 'Slow journeys', country: 'SE', industry: travel, publishedAt: 1, ...more }
  }
  const due = Date.now() + 3_600_000
  const directory = directoryOf([
    row('Östra Resor', { tags: ['Winter trips'] }),
    row('Opal', { publishedAt: 3, country: 'DE' }),
    row('Łódź Reisen', { publishedAt: 2, industry: { slug: 'rail', name: 'Rail' } }),
    row('Anders', { publishedAt: 2 }),
    row('Later', { publishedAt: due }),
  ])
  await checkDirectory(directory)
  t.equal(await directory.nextProfileChangeAt('acme', Date.now()), due)
  const api = createPartnerApi({ store, directory })
  const slugs = async (query: string) =>
    (await read(api, key, `/public/profiles?partner=acme${query}`)).body.data.map(({ slug }: Profile) => slug)
  t.strictSame(await slugs(''), ['anders', 'lodz-reisen', 'opal', 'ostra-resor'])
  t.strictSame(await slugs('&sort=-published_at'), ['opal', 'anders', 'lodz-reisen', 'ostra-resor'])
  t.strictSame(await slugs('&q=win'), ['ostra-resor'])
  t.strictSame(await slugs('&country=de&country=se&industry=rail'), ['lodz-reisen'])
  t.equal((await read(api, key, '/public/profiles/later?partner=acme')).status, 404)
  t.match((await read(api, key, '/public/industries?partner=acme')).body.data, [{ slug: 'rail' }, {
    slug: 'travel',
  }])
  await api.close()
  t.throws(() => directoryOf([row('Bad', { country: 'UK' })]), { message: /profile "bad": country must be/ })
})

test('null is accepted for absent members, as drivers return it', async (t) => {
  const store = createMemoryStore()
  const key = await admit(store)
  const opal = {
    ...profileNamed('Opal'),
    contact: null,
    employees: null,
    description: null,
  } as unknown as Profile
  const directory = {
    ...ownDirectory([opal]),
    findProfile: (_partner: string, slug: string) => slug === 'opal' ? opal : null as unknown as undefined,
  }
  const api = createPartnerApi({ store, directory })
  const { status, body } = await read(api, key, '/public/profiles/opal?partner=acme')
  t.strictSame([status, body.data?.contact, body.data?.employees], [200, null, null])
  t.match(await read(api, key, '/public/profiles/none?partner=acme'), {
    status: 404,
    body: { code: 'profile_not_found' },
  })
  await api.close()
})

test('an invalid row of a custom directory is one specific error', async (t) => {
  const store = createMemoryStore()
  const key = await admit(store)
  const good = profileNamed('Opal')
  const wrong: readonly (readonly [member: string, value: unknown])[] = [
    ['industry', undefined],
    ['country', 'Sweden'],
    ['publishedAt', '2026-01-01'],
    ['updatedAt', new Date()],
    ['headline', null],
  ]
  for (const [member, value] of wrong) {
    const directory = ownDirectory([good])
    const broken = { ...good, [member]: value } as Profile
    const answers: Directory = {
      ...directory,
      listProfiles: () => [broken],
      findProfile: () => Promise.resolve(broken),
    }
    const printed = t.capture(console, 'error', () => {})
    const logged: unknown[] = []
    for (const options of [{}, { log: (event: { error?: string }) => logged.push(event.error) }]) {
      const api = createPartnerApi({ store, directory: answers }, options)
      for (const path of ['/public/profiles?partner=acme', '/public/profiles/opal?partner=acme']) {
        const { status, body } = await read(api, key, path)
        t.strictSame([status, body.code, 'errors' in body], [500, 'internal', false], `${member} ${path}`)
        t.notMatch(
          JSON.stringify(body),
          new RegExp(`${member} must`),
          'the response does not show the reason',
        )
      }
      await api.close()
    }
    const message = new RegExp(`^directory: profile "opal": ${member} must be .*, not `)
    t.match(printed().map(({ args: [text] }) => text), [message], 'console.error, once and without a log')
    t.match(logged, [message, message].map(({ source }) => new RegExp(source.replace('^', '^Error: '))))
    await t.rejects(checkDirectory(answers), { message })
    printed.restore()
  }
})

test('checkDirectory detects inconsistencies between rows', async (t) => {
  const rows = ['Östra Resor', 'Opal', 'Łódź Reisen', 'Anders', 'Zeta'].map(profileNamed)
  const directory = directoryOf(rows)
  await checkDirectory(directory)
  const faults: readonly (readonly [Partial<Directory>, RegExp])[] = [
    [
      {
        listProfiles: (partner, query, now) =>
          directory.listProfiles(partner, { ...query, after: undefined }, now),
      },
      /the page after anders by name must be lodz-reisen, opal, ostra-resor, not anders, lodz-reisen, opal$/,
    ],
    [
      { listProfiles: (partner, query, now) => directory.listProfiles(partner, { ...query, limit: 9 }, now) },
      /the page after anders by name must be lodz-reisen, opal, ostra-resor, not lodz-reisen, opal, ostra-resor, zeta$/,
    ],
    [{ findProfile: () => undefined }, /findProfile of anders must be anders, not nothing/],
    [{ listIndustries: () => [] }, /listIndustries lacks travel, the industry of anders/],
    [{ countProfiles: () => new Map() }, /countProfiles by country must be SE,5, not nothing/],
  ]
  for (const [fault, message] of faults) {
    await t.rejects(checkDirectory({ ...directory, ...fault }), { message })
  }
})

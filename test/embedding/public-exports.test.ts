/** Embedding with public exports only: everything is imported from the entries of the package. */
import { test } from 'tap'
import {
  AdminError,
  checkDirectory,
  createKeyAdministration,
  createPartnerAdministration,
  createPartnerApi,
  type Directory,
  directoryOf,
  foldWords,
  importContent,
  type LogEvent,
  MODULE_NAMES,
  type ObservedService,
  type PartnerApi,
  Problem,
  type Profile,
  type Store,
} from '../../core/mod.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const actor = 'embedder'

/** Creates a partner with every module. @returns The text of its key. */
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

test('a store is filled and served', async (t) => {
  const store = await openMemoryStore()
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
  t.strictSame(Object.keys(api).sort(), ['close', 'fetch', 'flush', 'handle', 'protect'])
  const { status, body } = await read(api, key, '/public/profiles?partner=acme&q=mill')
  t.equal(status, 200)
  t.match(body.data, [{ slug: 'old-mill', country: { code: 'DE' } }])
  await t.rejects(admit(store), { constructor: AdminError, code: 'partner_exists' })
  await api.close()
})

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

test('a directory of a list satisfies the directory contract', async (t) => {
  const store = await openMemoryStore()
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
  t.throws(() => directoryOf([row('Recent')]), {
    message: /profile "recent": slug must be a slug other than "recent"/,
  })
  t.throws(() => directoryOf([row('Twice'), row('Twice')]), {
    message: 'directoryOf: profile twice: another row has the same slug',
  })
})

test('a profile with another slug than the one asked for is not served', async (t) => {
  const store = await openMemoryStore()
  const key = await admit(store)
  const directory: Directory = { ...directoryOf([]), findProfile: () => profileNamed('Hidden') }
  const printed = t.capture(console, 'error', () => {})
  const api = createPartnerApi({ store, directory })
  const { status, body } = await read(api, key, '/public/profiles/opal?partner=acme')
  t.strictSame([status, body.code], [404, 'profile_not_found'])
  t.match(JSON.parse(printed()[0]?.args[0]), {
    error: /directory\.findProfile: profile "hidden": its slug is not "opal"/,
  })
  await api.close()
})

test('an invalid row of a custom directory is one specific error', async (t) => {
  const store = await openMemoryStore()
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
    const broken = { ...good, [member]: value } as Profile
    const answers: Directory = {
      ...directoryOf([good]),
      listProfiles: () => [broken],
      findProfile: () => Promise.resolve(broken),
    }
    const printed = t.capture(console, 'error', () => {})
    const logged: unknown[] = []
    const log = ({ event, error }: LogEvent) => event === 'request' && logged.push(error)
    for (const options of [{}, { log }]) {
      const api = createPartnerApi({ store, directory: answers }, { ...options, onInvalidRow: 'fail' })
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
    const messages = ['listProfiles', 'findProfile'].map((method) =>
      new RegExp(`^directory.${method}: profile "opal": ${member} must be .*, not `)
    )
    const events = printed().map(({ args: [text] }): LogEvent => JSON.parse(text))
    const invalid = events.filter(({ event }) => event === 'directory_invalid')
    t.match(invalid.map(({ error }) => error), messages, 'console.error, once and without a log')
    t.match(logged, messages.map(({ source }) => new RegExp(source.replace('^', '^Error: '))))
    await t.rejects(checkDirectory(answers), { message: messages[0]! })
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
      /^directory.listProfiles: the result must have at most 3 rows, not 4$/,
    ],
    [{ findProfile: () => undefined }, /findProfile of anders must be anders, not nothing/],
    [{ listIndustries: () => [] }, /listIndustries lacks travel, the industry of anders/],
    [{ countProfiles: () => new Map() }, /countProfiles by country must be SE,5, not nothing/],
  ]
  for (const [fault, message] of faults) {
    await t.rejects(checkDirectory({ ...directory, ...fault }), { message })
  }
})

test('what drivers return is converted, and what is no row is an error', async (t) => {
  const store = await openMemoryStore()
  const key = await admit(store)
  const opal = {
    ...profileNamed('Opal'),
    publishedAt: 0n,
    updatedAt: '5',
    foundedYear: '1999',
    tags: null,
    contact: null,
    employees: null,
    description: null,
  }
  const base = directoryOf(['Opal', 'Anders'].map(profileNamed))
  /** A query of a builder, which runs when it is awaited. */
  const query = (rows: unknown) => ({ then: (resolve: (rows: unknown) => void) => resolve(rows) }) as never
  const get = async (directory: Partial<Directory>, path: string) => {
    const events: LogEvent[] = []
    const log = (event: LogEvent): void => void events.push(event)
    const api = createPartnerApi({ store, directory: { ...base, ...directory } }, { maxStalenessMs: 0, log })
    const { status, body } = await read(api, key, `${path}partner=acme`)
    await api.close()
    const errors = new Set(events.map(({ error }) => error?.replace('Error: ', '')))
    return [status, body.data, [...errors].join()]
  }
  const countries = '/public/countries?in_use=true&'
  const profile = '/public/profiles/opal?'
  const cases: readonly (readonly [Partial<Directory>, path: string, expected: unknown])[] = [
    [{ findProfile: () => query(opal) }, profile, [200, {
      updated_at: '1970-01-01T00:00:00.005Z',
      founded_year: 1999,
      tags: [],
      contact: null,
      employees: null,
      description: null,
    }, '']],
    [{ findProfile: () => query(null) }, profile, [404, undefined, '']],
    [{ findProfile: () => Promise.reject(new Problem('store_unavailable')) }, profile, [503, undefined]],
    [{ countProfiles: () => query(new Map<string, unknown>([['SE', '3'], ['DE', 2n]])) }, countries, [200, [
      { code: 'DE', profile_count: 2 },
      { code: 'SE', profile_count: 3 },
    ], '']],
    [{ countProfiles: () => new Map([['SE', -1], ['DE', 2]]) }, countries, [
      200,
      [{ code: 'DE' }],
      'directory.countProfiles: country "SE": count must be an integer, 0 or more, not -1',
    ]],
    [
      { countProfiles: () => ({ SE: 3 }) as never },
      countries,
      [500, undefined, 'directory.countProfiles: the result must be a Map, not an object'],
    ],
    [{ listProfiles: () => [opal, profileNamed('Anders')] as never }, '/public/profiles/recent?limit=1&', [
      200,
      [{ slug: 'opal' }],
      'directory.listProfiles: the result must have at most 1 rows, not 2',
    ]],
    [{ directoryRevision: undefined, nextProfileChangeAt: () => null } as never, profile, [200, {}, '']],
  ]
  for (const [directory, path, expected] of cases) t.match(await get(directory, path), expected as object)
  const rows = Array.from(
    { length: 1_100 },
    (_, index) => ({ ...profileNamed(`N ${index}`), tags: undefined }),
  )
  await checkDirectory(directoryOf(rows as never))
})

test('an invalid row is left out of full pages, logged once and counted', async (t) => {
  const store = await openMemoryStore()
  const key = await admit(store)
  const valid = directoryOf(['Anders', 'Bad', 'Cosy', 'Day', 'Elm'].map(profileNamed))
  const spoil = <Row extends { slug: string }>(row: Row): Row =>
    row.slug === 'bad' ? { ...row, country: 'UK' } : row
  const directory: Directory = {
    ...valid,
    listProfiles: async (...args) => (await valid.listProfiles(...args)).map(spoil),
    findProfile: async (...args) => spoil((await valid.findProfile(...args))!),
  }
  const errors: (string | undefined)[] = []
  let measurements: ObservedService['measurements'] | undefined
  const api = createPartnerApi({ store, directory }, {
    log: ({ error }) => errors.push(error),
    observers: [{ serviceCreated: (service) => measurements = service.measurements }],
  })
  const first = (await read(api, key, '/public/profiles?partner=acme&limit=2')).body
  const path = `/public/profiles?partner=acme&limit=2&cursor=${first.page.next_cursor}`
  const { data, page } = (await read(api, key, path)).body
  const slugs = [...first.data, ...data].map(({ slug }) => slug)
  t.strictSame([slugs, page.has_more], [['anders', 'cosy', 'day', 'elm'], false])
  t.equal((await read(api, key, '/public/profiles/bad?partner=acme')).status, 404)
  t.ok((await measurements!()).invalidRows >= 2)
  const reason = 'profile "bad": country must be an ISO 3166-1 alpha-2 code or XK, in upper case, not "UK"'
  t.strictSame(
    errors,
    ['directory.listProfiles', 'directory.findProfile'].map((port) => `${port}: ${reason}`),
  )
  await api.close()
})

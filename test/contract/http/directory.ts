/** Section 4: recent profiles, and the filters and orders of the directory. */
import type { ProfileLine } from '../../support/world.ts'
import { dataOf, expectInvalid, expectProblem, invalidFields } from './expect.ts'
import { byName, card, matches, newestFirst, publicSet } from './oracle.ts'
import { get, type Service, type Suite, type TestContext } from './service.ts'

export const directory: readonly Suite[] = [{
  tests: {
    'recent profiles are the newest, ten by default': recentProfiles,
    'the directory lists all visible profiles in the requested order': directoryList,
    'country and industry filter the directory': filters,
    'q finds profiles by the beginnings of folded words': search,
    'invalid and unknown parameters are all reported': invalidParameters,
  },
}]

async function recentProfiles(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme'] as const) {
    const key = world.keys[`${partner} full`]
    const expected = newestFirst(publicSet(world.lines, partner)).map((line) => card(line, world))
    const request = (limit = '') =>
      get(service, `/public/profiles/recent?partner=${partner}${limit}`, { key })
    t.strictSame((await request()).json, { data: expected.slice(0, 10) }, `ten by default, for ${partner}`)
    for (const limit of [1, 7, 49, 50]) {
      const { json } = await request(`&limit=${limit}`)
      t.strictSame(json, { data: expected.slice(0, limit) }, `limit=${limit}`)
    }
  }
  const request = (query: string) => get(service, `/public/profiles/recent?partner=demo&${query}`)
  for (const limit of '0 51 -1 1.5 1e1 ten +5 0x5 99999999999999999999 5+'.split(' ')) {
    expectInvalid(t, await request(`limit=${limit}`), ['limit'], `limit=${limit}`)
  }
  for (const name of ['q', 'country', 'industry', 'sort', 'cursor', 'Limit', 'offset']) {
    expectInvalid(t, await request(`${name}=1`), [name], `${name} is a parameter of the directory only`)
  }
  expectInvalid(t, await request('limit=1&limit=1'), ['limit'], 'a repeated limit')
  t.ok(!(await request('limit=1')).headers.has('link'), 'there is no next page')
}

/** The slugs of all matches in one page: the world has fewer than a hundred profiles. */
async function slugsFor(
  t: TestContext,
  service: Service,
  query: string,
  partner = 'demo',
): Promise<string[]> {
  const key = service.world.keys[`${partner as 'demo' | 'acme'} full`]
  const response = await get(service, `/public/profiles?partner=${partner}&limit=100${query}`, { key })
  const data: readonly { slug: string }[] = dataOf(t, response, query) ?? []
  return data.map(({ slug }) => slug)
}

function slugs(lines: readonly ProfileLine[]): string[] {
  return lines.map(({ slug }) => slug)
}

async function directoryList(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme'] as const) {
    const visible = publicSet(world.lines, partner)
    t.ok(visible.length > 55 && visible.length < 100, 'the number of profiles fits the test')
    const key = world.keys[`${partner} full`]
    const response = await get(service, `/public/profiles?partner=${partner}&limit=100`, { key })
    t.strictSame(response.json, {
      data: byName(visible).map((line) => card(line, world)),
      page: { limit: 100, has_more: false, next_cursor: null },
    }, `all of ${partner}, by name`)
    t.ok(!response.headers.has('link'), 'the last page has no link')
    const named = await slugsFor(t, service, '&sort=name', partner)
    t.strictSame(named, slugs(byName(visible)), 'sorted by name')
    const newest = await slugsFor(t, service, '&sort=-published_at', partner)
    t.strictSame(newest, slugs(newestFirst(visible)), 'newest first')
  }
  const page = (await get(service, '/public/profiles?partner=demo')).json
  t.strictSame([page.data.length, page.page.limit, page.page.has_more], [20, 20, true], 'twenty by default')
}

async function filters(t: TestContext, service: Service): Promise<void> {
  const visible = byName(publicSet(service.world.lines, 'demo'))
  const by = (test: (line: ProfileLine) => boolean): string[] => slugs(visible.filter(test))
  const from = (...codes: string[]) => by(({ country }) => codes.includes(country))
  const inIndustry = (...names: string[]) => by(({ industry }) => names.includes(industry))
  const cases: readonly [string, readonly string[]][] = [
    ['&country=DE', from('DE')],
    ['&country=de', from('DE')],
    ['&country=dE', from('DE')],
    ['&country=XK', from('XK')],
    ['&country=DE&country=FR', from('DE', 'FR')],
    ['&country=fr&country=DE&country=FR', from('DE', 'FR')],
    ['&country=TV', []],
    ['&industry=software', inIndustry('software')],
    ['&industry=software&industry=health', inIndustry('software', 'health')],
    // A parent industry without profiles: children are not included.
    ['&industry=technology', inIndustry('technology')],
    ['&industry=education', inIndustry('education')],
    ['&industry=no-such-industry', []],
    ['&industry=no-such-industry&industry=health', inIndustry('health')],
    ['&country=US&industry=software', by((line) => line.country === 'US' && line.industry === 'software')],
    ['&country=US&industry=software&q=maps', by((line) => line.country === 'US' && matches(line, 'maps'))],
    [
      '&country=US&country=BR&industry=software',
      by((line) => line.country === 'US' && line.industry === 'software'),
    ],
  ]
  for (const [query, expected] of cases) t.strictSame(await slugsFor(t, service, query), expected, query)
  t.strictSame(inIndustry('technology'), [], 'the parent industry has no profiles')
  const few = 'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB DE FR'.split(' ')
  const repeated = few.map((code) => `&country=${code}`).join('')
  t.strictSame(
    [few.length, await slugsFor(t, service, repeated)],
    [20, from(...few)],
    'twenty values of one parameter',
  )
  const newest = slugs(newestFirst(visible.filter(({ country }) => country === 'FR')))
  t.strictSame(await slugsFor(t, service, '&country=FR&sort=-published_at'), newest, 'a filter with an order')
}

const searches = [
  'université | universite | UNIVERSITE | UNIVERSITÉ | universite\u0301 | Ｕｎｉｖｅｒｓｉｔｅ | niversite | ',
  'weißenfluß | weissenfluss | WEIẞENFLUSS | messtechnik | smorrebrodsvaerkstedet | ',
  'Smørrebrødsværkstedet | SMØRREBRØD | skjaergard | oeuvre | œuvre | thorsmyri | Þórsmýri | ',
  'jardvarmi | hafthoka | laczyswit | zoltolodka | nutifafa | ghaqda | harruba | isildag | ISILDAĞ | ',
  'doi suong | đồi sương | cafe | cafe almirela | almirela CAFÉ | d’aubelle | daubelle | o malley | ',
  "o'malley-quist | co-op | coop | ελαιωνες | ΕΛΑΙΏΝΕΣ | ελαιωνεσ | ΜΕΤΑΦΟΡΕΣ | μεταφορεσ | видавництво | 珈琲 | みずうみ | みす | 달무리숲 | دار | ",
  'चंपावन | 2100 | cold chain | cold   chain, | coffee roastery | wave power | bare | Östersund | ',
  'nothing-of-the-kind | ',
  'a'.repeat(100),
].join('').split(' | ')

async function search(t: TestContext, service: Service): Promise<void> {
  const visible = byName(publicSet(service.world.lines, 'demo'))
  const expectedFor = (q: string): string[] => slugs(visible.filter((line) => matches(line, q)))
  const slugsWith = (q: string) => slugsFor(t, service, `&q=${encodeURIComponent(q)}`)
  let found = 0
  for (const q of searches) {
    const expected = expectedFor(q)
    found += expected.length
    t.strictSame(await slugsWith(q), expected, `q=${q.slice(0, 40)}`)
  }
  t.ok(found > 80, 'the searches find something')
  const french = await slugsWith('universite')
  const starting = ['universite-de-valmorne', 'yildizpinar-universitesi']
  t.strictSame(starting.filter((slug) => !french.includes(slug)), [], 'words match by their beginnings')
  t.strictSame(await slugsFor(t, service, '&q=cold+chain'), await slugsWith('cold chain'), '+ is a space')
  for (const q of ['draft', 'not yet', 'for nobody', 'for acme', 'observatoire']) {
    t.strictSame(await slugsWith(q), [], `not visible to the partner: ${q}`)
  }
  t.strictSame(await slugsFor(t, service, '&q=for+acme', 'acme'), ['for-acme'], 'a private profile')
  t.strictSame(await slugsWith(`${'😀'.repeat(99)}a`), expectedFor('a'), '100 code points')
  t.strictSame(await slugsWith(`${'😀'.repeat(50)} cafe`), await slugsWith('cafe'), 'symbols separate words')
  for (const q of ['é', 'a', '', ' ', '  ', '!!', '--', '😀😀', 'a'.repeat(101), 'é'.repeat(101)]) {
    const response = await get(service, `/public/profiles?partner=demo&q=${encodeURIComponent(q)}`)
    expectInvalid(t, response, ['q'], `q=${q.slice(0, 20)}`)
  }
}

async function invalidParameters(t: TestContext, service: Service): Promise<void> {
  const request = (query: string) => get(service, `/public/profiles?partner=demo&${query}`)
  const wrong: Readonly<Record<string, string>> = {
    limit: 'limit=0 limit=101 limit=-5 limit=2.0 limit=1e2 limit= limit limit=+7 limit=1&limit=2',
    sort: 'sort= sort=Name sort=-name sort=published_at sort=name,-published_at sort=name&sort=name',
    q: 'q=aa&q=bb',
    // In upper case, the percent-encoded values become ID, SS and FI.
    country: 'country= country=D country=DEU country=ZZ country=UK country=EU country=SU country=%C4%B1d ' +
      `country=%C3%9F country=%EF%AC%81 country=D%20 country=DE,FR ${Array(21).fill('country=DE').join('&')}`,
    industry: Array(21).fill('industry=health').join('&'),
    page: 'page=2',
    in_use: 'in_use=true',
    locale: 'locale=de',
    'country[]': 'country[]=DE',
    ['__proto__']: '__proto__=1',
    toString: 'toString=1',
    '': '=1',
    Q: 'Q=aa',
    'bar country foo limit q sort': 'limit=0&sort=x&q=a&country=ZZ&foo=1&bar=2',
    'limit q x': 'limit=1&limit=2&q=%ff&x=1',
  }
  for (const [names, queries] of Object.entries(wrong)) {
    for (const query of queries.split(' ')) {
      const response = await request(query)
      expectProblem(t, response, 'invalid_parameter', query.slice(0, 60))
      const places = [...new Set(invalidFields(response))]
      t.strictSame(places, names.split(' '), `all invalid parameters are named: ${query.slice(0, 60)}`)
    }
  }
  const health = Array(20).fill('industry=health').join('&')
  t.equal((await request(health)).status, 200, 'twenty equal values are allowed')
  t.equal((await request('limit=%31%30')).json?.page.limit, 10, 'values are decoded')
  t.equal((await request('&&limit=5&')).json?.page.limit, 5, 'empty pieces are ignored')
  t.equal((await request('s%6Frt=name')).status, 200, 'names are decoded')
}

/** Section 4: recent profiles and the directory's filters and orders. */
import type { ProfileLine } from '../../support/world.ts'
import { dataOf, errorPlaces, expectInvalid, expectProblem } from './expect.ts'
import { byName, card, matches, newestFirst, publicSet } from './oracle.ts'
import { get, type Service, type Suite, type Tester } from './service.ts'

export const directory: readonly Suite[] = [{
  tests: {
    'recent profiles': recent,
    'the whole directory': whole,
    'filters': filters,
    'search': search,
    'parameters that are refused': refused,
  },
}]

async function recent(t: Tester, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme'] as const) {
    const key = world.keys[`${partner} full`]
    const expected = newestFirst(publicSet(world.lines, partner)).map((line) => card(line, world))
    const ask = (limit = '') => get(service, `/public/profiles/recent?partner=${partner}${limit}`, { key })
    t.strictSame((await ask()).json, { data: expected.slice(0, 10) }, `ten, for ${partner}`)
    for (const limit of [1, 7, 49, 50]) {
      const { json } = await ask(`&limit=${limit}`)
      t.strictSame(json, { data: expected.slice(0, limit) }, `limit=${limit}`)
    }
  }
  const ask = (query: string) => get(service, `/public/profiles/recent?partner=demo&${query}`)
  for (const limit of '0 51 -1 1.5 1e1 ten +5 0x5 99999999999999999999 5+'.split(' ')) {
    expectInvalid(t, await ask(`limit=${limit}`), ['limit'], `limit=${limit}`)
  }
  for (const name of ['q', 'country', 'industry', 'sort', 'cursor', 'Limit', 'offset']) {
    expectInvalid(t, await ask(`${name}=1`), [name], `${name} is the directory’s`)
  }
  expectInvalid(t, await ask('limit=1&limit=1'), ['limit'], 'a repeated limit')
  t.ok(!(await ask('limit=1')).headers.has('link'), 'it does not page')
}

/** Asks for all that matches at once: there are fewer than a hundred. */
async function slugsFor(t: Tester, service: Service, query: string, partner = 'demo'): Promise<string[]> {
  const key = service.world.keys[`${partner as 'demo' | 'acme'} full`]
  const heard = await get(service, `/public/profiles?partner=${partner}&limit=100${query}`, { key })
  const data: readonly { slug: string }[] = dataOf(t, heard, query) ?? []
  return data.map(({ slug }) => slug)
}

function slugs(lines: readonly ProfileLine[]): string[] {
  return lines.map(({ slug }) => slug)
}

async function whole(t: Tester, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme'] as const) {
    const visible = publicSet(world.lines, partner)
    t.ok(visible.length > 55 && visible.length < 100, 'the world has as many as the tests assume')
    const key = world.keys[`${partner} full`]
    const heard = await get(service, `/public/profiles?partner=${partner}&limit=100`, { key })
    t.strictSame(heard.json, {
      data: byName(visible).map((line) => card(line, world)),
      page: { limit: 100, has_more: false, next_cursor: null },
    }, `all of ${partner}, by name`)
    t.ok(!heard.headers.has('link'), 'the last page links to none')
    const named = await slugsFor(t, service, '&sort=name', partner)
    t.strictSame(named, slugs(byName(visible)), 'sorted by name')
    const newest = await slugsFor(t, service, '&sort=-published_at', partner)
    t.strictSame(newest, slugs(newestFirst(visible)), 'newest first')
  }
  const page = (await get(service, '/public/profiles?partner=demo')).json
  t.strictSame([page.data.length, page.page.limit, page.page.has_more], [20, 20, true], 'twenty unless asked')
}

async function filters(t: Tester, service: Service): Promise<void> {
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
    // A parent without profiles of its own: children are not included.
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
  t.strictSame(inIndustry('technology'), [], 'the world has a parent without profiles of its own')
  const few = 'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB DE FR'.split(' ')
  const repeated = few.map((code) => `&country=${code}`).join('')
  t.strictSame([few.length, await slugsFor(t, service, repeated)], [20, from(...few)], 'twenty of one')
  const newest = slugs(newestFirst(visible.filter(({ country }) => country === 'FR')))
  t.strictSame(await slugsFor(t, service, '&country=FR&sort=-published_at'), newest, 'with an order')
}

const searches = [
  'université | universite | UNIVERSITE | UNIVERSITÉ | universite\u0301 | Ｕｎｉｖｅｒｓｉｔｅ | niversite | ',
  'weißenfluß | weissenfluss | WEIẞENFLUSS | messtechnik | smorrebrodsvaerkstedet | ',
  'Smørrebrødsværkstedet | SMØRREBRØD | skjaergard | oeuvre | œuvre | thorsmyri | Þórsmýri | ',
  'jardvarmi | hafthoka | laczyswit | zoltolodka | nutifafa | ghaqda | harruba | isildag | ISILDAĞ | ',
  'doi suong | đồi sương | cafe | cafe almirela | almirela CAFÉ | d’aubelle | daubelle | o malley | ',
  "o'malley-quist | co-op | coop | ελαιωνες | ΕΛΑΙΏΝΕΣ | видавництво | 珈琲 | みずうみ | みす | 달무리숲 | دار | ",
  'चंपावन | 2100 | cold chain | cold   chain, | coffee roastery | wave power | bare | Östersund | ',
  'nothing-of-the-kind | ',
  'a'.repeat(100),
].join('').split(' | ')

async function search(t: Tester, service: Service): Promise<void> {
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
  t.strictSame(starting.filter((slug) => !french.includes(slug)), [], 'starts of words')
  t.strictSame(await slugsFor(t, service, '&q=cold+chain'), await slugsWith('cold chain'), '+ is a space')
  for (const q of ['draft', 'not yet', 'for nobody', 'for acme', 'observatoire']) {
    t.strictSame(await slugsWith(q), [], `not in P: ${q}`)
  }
  t.strictSame(await slugsFor(t, service, '&q=for+acme', 'acme'), ['for-acme'], 'a private row')
  t.strictSame(await slugsWith(`${'😀'.repeat(99)}a`), expectedFor('a'), '100 code points')
  t.strictSame(await slugsWith(`${'😀'.repeat(50)} cafe`), await slugsWith('cafe'), 'symbols separate')
  for (const q of ['é', 'a', '', ' ', '  ', '!!', '--', '😀😀', 'a'.repeat(101), 'é'.repeat(101)]) {
    const heard = await get(service, `/public/profiles?partner=demo&q=${encodeURIComponent(q)}`)
    expectInvalid(t, heard, ['q'], `q=${q.slice(0, 20)}`)
  }
}

async function refused(t: Tester, service: Service): Promise<void> {
  const ask = (query: string) => get(service, `/public/profiles?partner=demo&${query}`)
  const wrong: Readonly<Record<string, string>> = {
    limit: 'limit=0 limit=101 limit=-5 limit=2.0 limit=1e2 limit= limit limit=+7 limit=1&limit=2',
    sort: 'sort= sort=Name sort=-name sort=published_at sort=name,-published_at sort=name&sort=name',
    q: 'q=aa&q=bb',
    // To upper case, the ones in percent-encoding become ID, SS and FI.
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
      const heard = await ask(query)
      expectProblem(t, heard, 'invalid_parameter', query.slice(0, 60))
      const places = [...new Set(errorPlaces(heard))]
      t.strictSame(places, names.split(' '), `all of them are named: ${query.slice(0, 60)}`)
    }
  }
  const health = Array(20).fill('industry=health').join('&')
  t.equal((await ask(health)).status, 200, 'twenty of one, though the same')
  t.equal((await ask('limit=%31%30')).json?.page.limit, 10, 'values are decoded')
  t.equal((await ask('&&limit=5&')).json?.page.limit, 5, 'empty pieces are ignored')
  t.equal((await ask('s%6Frt=name')).status, 200, 'names are decoded')
}

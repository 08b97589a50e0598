/** Section 4: recent profiles and the directory's filters and orders. */
import type { ProfileLine } from '../../support/world.ts'
import { dataOf, expectInvalid } from './expect.ts'
import { byName, card, matches, newestFirst, publicSet } from './oracle.ts'
import { type Deploy, get, type Service, type Tester } from './service.ts'

export async function directory(t: Tester, deploy: Deploy): Promise<void> {
  await deploy({}, async (service) => {
    await t.test('recent profiles', (t) => recent(t, service))
    await t.test('the whole directory', (t) => whole(t, service))
    await t.test('filters', (t) => filters(t, service))
    await t.test('search', (t) => search(t, service))
    await t.test('parameters that are refused', (t) => refused(t, service))
  })
}

async function recent(t: Tester, service: Service): Promise<void> {
  const { world } = service
  for (const partner of ['demo', 'acme']) {
    const key = world.keys[`${partner as 'demo' | 'acme'} full`]
    const expected = newestFirst(publicSet(world.lines, partner)).map((line) => card(line, world))
    const path = `/public/profiles/recent?partner=${partner}`
    t.strictSame(
      (await get(service, path, { key })).json,
      { data: expected.slice(0, 10) },
      `ten, for ${partner}`,
    )
    for (const limit of [1, 7, 49, 50]) {
      const heard = await get(service, `${path}&limit=${limit}`, { key })
      t.strictSame(dataOf(t, heard, `limit=${limit}`), expected.slice(0, limit), `limit=${limit}`)
    }
  }
  const path = '/public/profiles/recent?partner=demo'
  for (const limit of ['0', '51', '-1', '1.5', '1e1', 'ten', '', '+5', '0x5', '99999999999999999999', '5+']) {
    expectInvalid(t, await get(service, `${path}&limit=${limit}`), ['limit'], `limit=${limit}`)
  }
  for (const name of ['q', 'country', 'industry', 'sort', 'cursor', 'Limit', 'offset']) {
    expectInvalid(t, await get(service, `${path}&${name}=1`), [name], `${name} is the directory’s`)
  }
  expectInvalid(t, await get(service, `${path}&limit=1&limit=1`), ['limit'], 'a repeated limit')
  t.ok(!(await get(service, `${path}&limit=1`)).headers.has('link'), 'it does not page')
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
    t.strictSame(
      await slugsFor(t, service, '&sort=name', partner),
      slugs(byName(visible)),
      'asked for by name',
    )
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
  'université',
  'universite',
  'UNIVERSITE',
  'UNIVERSITÉ',
  'universite\u0301',
  'Ｕｎｉｖｅｒｓｉｔｅ',
  'niversite',
  'weißenfluß',
  'weissenfluss',
  'WEIẞENFLUSS',
  'messtechnik',
  'smorrebrodsvaerkstedet',
  'Smørrebrødsværkstedet',
  'SMØRREBRØD',
  'skjaergard',
  'oeuvre',
  'œuvre',
  'thorsmyri',
  'Þórsmýri',
  'jardvarmi',
  'hafthoka',
  'laczyswit',
  'zoltolodka',
  'nutifafa',
  'ghaqda',
  'harruba',
  'isildag',
  'ISILDAĞ',
  'doi suong',
  'đồi sương',
  'cafe',
  'cafe almirela',
  'almirela CAFÉ',
  'd’aubelle',
  'daubelle',
  'o malley',
  "o'malley-quist",
  'co-op',
  'coop',
  'ελαιωνες',
  'ΕΛΑΙΏΝΕΣ',
  'видавництво',
  '珈琲',
  'みずうみ',
  'みす',
  '달무리숲',
  'دار',
  'चंपावन',
  '2100',
  'cold chain',
  'cold   chain,',
  'coffee roastery',
  'wave power',
  'bare',
  'Östersund',
  'nothing-of-the-kind',
  'a'.repeat(100),
]

async function search(t: Tester, service: Service): Promise<void> {
  const visible = byName(publicSet(service.world.lines, 'demo'))
  let found = 0
  for (const q of searches) {
    const expected = wordsWith(q)
    found += expected.length
    t.strictSame(await slugsFor(t, service, `&q=${encodeURIComponent(q)}`), expected, `q=${q.slice(0, 40)}`)
  }
  t.ok(found > 80, 'the searches find something')
  const french = await slugsFor(t, service, '&q=universite')
  t.ok(
    french.includes('universite-de-valmorne') && french.includes('yildizpinar-universitesi'),
    'starts of words',
  )
  t.strictSame(
    await slugsFor(t, service, '&q=cold+chain'),
    await slugsFor(t, service, '&q=cold%20chain'),
    '+ is a space',
  )
  for (const [partner, expected] of [['demo', []], ['acme', ['for-acme']]] as const) {
    t.strictSame(
      await slugsFor(t, service, '&q=for+acme', partner),
      [...expected],
      `private rows, for ${partner}`,
    )
  }
  for (const q of ['draft', 'not yet', 'for nobody', 'observatoire']) {
    t.strictSame(await slugsFor(t, service, `&q=${encodeURIComponent(q)}`), [], `in no P: ${q}`)
  }
  t.strictSame(
    await slugsFor(t, service, `&q=${encodeURIComponent(`${'😀'.repeat(99)}a`)}`),
    wordsWith('a'),
    '100',
  )
  const spaced = encodeURIComponent(`${'😀'.repeat(50)} cafe`)
  t.strictSame(
    await slugsFor(t, service, `&q=${spaced}`),
    await slugsFor(t, service, '&q=cafe'),
    'symbols separate',
  )
  for (const q of ['é', 'a', '', ' ', '  ', '!!', '--', '😀😀', 'a'.repeat(101), 'é'.repeat(101)]) {
    const heard = await get(service, `/public/profiles?partner=demo&q=${encodeURIComponent(q)}`)
    expectInvalid(t, heard, ['q'], `q=${q.slice(0, 20)}`)
  }

  function wordsWith(q: string): string[] {
    return slugs(visible.filter((line) => matches(line, q)))
  }
}

async function refused(t: Tester, service: Service): Promise<void> {
  const ask = (query: string) => get(service, `/public/profiles?partner=demo&${query}`)
  const wrong: readonly [string, readonly string[]][] = [
    ['limit=0', ['limit']],
    ['limit=101', ['limit']],
    ['limit=-5', ['limit']],
    ['limit=2.0', ['limit']],
    ['limit=1e2', ['limit']],
    ['limit=', ['limit']],
    ['limit', ['limit']],
    ['limit=+7', ['limit']],
    ['limit=1&limit=2', ['limit']],
    ['sort=', ['sort']],
    ['sort=Name', ['sort']],
    ['sort=-name', ['sort']],
    ['sort=published_at', ['sort']],
    ['sort=name,-published_at', ['sort']],
    ['sort=name&sort=name', ['sort']],
    ['q=aa&q=bb', ['q']],
    ['country=', ['country']],
    ['country=D', ['country']],
    ['country=DEU', ['country']],
    ['country=ZZ', ['country']],
    ['country=UK', ['country']],
    ['country=EU', ['country']],
    ['country=SU', ['country']],
    // To upper case, these become ID, SS and FI.
    ['country=%C4%B1d', ['country']],
    ['country=%C3%9F', ['country']],
    ['country=%EF%AC%81', ['country']],
    ['country=D%20', ['country']],
    ['country=DE,FR', ['country']],
    [Array(21).fill('country=DE').join('&'), ['country']],
    [Array(21).fill('industry=health').join('&'), ['industry']],
    ['page=2', ['page']],
    ['in_use=true', ['in_use']],
    ['locale=de', ['locale']],
    ['country[]=DE', ['country[]']],
    ['__proto__=1', ['__proto__']],
    ['toString=1', ['toString']],
    ['=1', ['']],
    ['Q=aa', ['Q']],
    ['limit=0&sort=x&q=a&country=ZZ&foo=1&bar=2', ['bar', 'country', 'foo', 'limit', 'q', 'sort']],
    ['limit=1&limit=2&q=%ff&x=1', ['limit', 'q', 'x']],
  ]
  for (const [query, names] of wrong) {
    const heard = await ask(query)
    const places: string[] = (heard.json?.errors ?? []).map(({ parameter }: { parameter: string }) =>
      parameter
    )
    expectInvalid(t, heard, places, query.slice(0, 60))
    t.strictSame([...new Set(places)].toSorted(), names, `all of them are named: ${query.slice(0, 60)}`)
  }
  const health = Array(20).fill('industry=health').join('&')
  t.equal((await ask(health)).status, 200, 'twenty of one, though the same')
  t.equal((await ask('limit=%31%30')).json?.page.limit, 10, 'values are decoded')
  t.equal((await ask('&&limit=5&')).json?.page.limit, 5, 'empty pieces are nothing')
  t.equal((await ask('s%6Frt=name')).status, 200, 'names are decoded')
}

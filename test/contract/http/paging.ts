/** Section 4: pages put together are the list, and a cursor belongs to one query of one partner. */
import { expectProblem } from './expect.ts'
import { byName, newestFirst, publicSet } from './oracle.ts'
import { get, type Heard, type Service, type Suite, type Tester, withKey } from './service.ts'

export const paging: readonly Suite[] = [{
  tests: {
    'walking': walks,
    'the next page as a link': links,
    'a cursor that was altered': altered,
    'a cursor of another query': others,
  },
}, { changesContent: true, tests: { 'rows that come and go': changes } }]

function page(service: Service, query: string, partner: 'demo' | 'acme' = 'demo'): Promise<Heard> {
  const key = service.world.keys[`${partner} full`]
  return get(service, `/public/profiles?partner=${partner}&${query}`, { key })
}

async function cursorOf(service: Service, query: string): Promise<string> {
  const cursor: unknown = (await page(service, query)).json?.page?.next_cursor
  if (typeof cursor !== 'string') throw new Error(`no next_cursor for ${query}`)
  return encodeURIComponent(cursor)
}

/** Follows `next_cursor` to the end. @returns The slugs of each page. */
async function walk(
  t: Tester,
  service: Service,
  query: string,
  limit: number,
  between?: (pages: number) => Promise<void>,
): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor = ''; pages.length < 200;) {
    const { json, status } = await page(service, `${query}&limit=${limit}${cursor}`)
    if (status !== 200) throw new Error(`page ${pages.length + 1}: ${status}`)
    const { limit: said, has_more: more, next_cursor: next } = json.page
    const expected = [limit, next !== null, more ? 'string' : 'object']
    t.strictSame([said, more, typeof next], expected, 'page is consistent')
    pages.push(json.data.map(({ slug }: { slug: string }) => slug))
    if (next === null) return pages
    await between?.(pages.length)
    cursor = `&cursor=${encodeURIComponent(next)}`
  }
  throw new Error('the walk does not end')
}

async function walks(t: Tester, service: Service): Promise<void> {
  const visible = publicSet(service.world.lines, 'demo')
  const [all, newest] = [byName(visible), newestFirst(visible)].map((lines) => lines.map(({ slug }) => slug))
  for (const [query, expected = []] of [['', all], ['sort=-published_at', newest]] as const) {
    for (const limit of [query === '' ? 1 : 3, 7, expected.length - 1, expected.length]) {
      const pages = await walk(t, service, query, limit)
      t.strictSame(pages.flat(), expected, `${query}, ${limit} at a time, gives each once and in order`)
      t.equal(pages.length, Math.ceil(expected.length / limit), 'in as many pages as it takes')
    }
  }
  const filtered = visible.filter(({ country }) => ['FR', 'US', 'JP'].includes(country))
  const pages = await walk(t, service, 'country=FR&country=US&country=JP&sort=-published_at', 2)
  t.strictSame(pages.flat(), newestFirst(filtered).map(({ slug }) => slug), 'with a filter')
  const found = await walk(t, service, 'q=ca', 2)
  t.ok(found.flat().length > 6, 'a search has pages, too')
  const empty = { limit: 20, has_more: false, next_cursor: null }
  t.strictSame((await page(service, 'industry=no-such')).json, { data: [], page: empty }, 'an empty page')

  const start = await cursorOf(service, 'limit=3')
  const wider: readonly { slug: string }[] = (await page(service, `limit=10&cursor=${start}`)).json.data
  t.strictSame(wider.map(({ slug }) => slug), all?.slice(3, 13), 'the size of pages may change')
}

async function links(t: Tester, service: Service): Promise<void> {
  const { root, send, world } = service
  const origin = 'http://service.example'
  const headers = withKey(world.keys['demo full'])
  for (
    const query of [
      'sort=-published_at&limit=9',
      'q=c%C3%B3ld+chain&limit=1',
      'country=FR&country=us&limit=2',
    ]
  ) {
    const slugs: string[] = []
    let target: string | undefined = `${root}/public/profiles?partner=demo&${query}`
    const expected = (await walk(t, service, query.replace(/&?limit=\d+/, ''), 7)).flat()
    while (target !== undefined) {
      const heard: Heard = await send({ target, headers })
      if (heard.status !== 200) throw new Error(`${target}: ${heard.status}`)
      slugs.push(...heard.json.data.map(({ slug }: { slug: string }) => slug))
      const link = heard.headers.get('link')
      t.equal(link !== undefined, heard.json.page.has_more, 'a link as long as there is more')
      const [, reference] = /^<([^<>]*)>; rel="next"$/.exec(link ?? '') ?? []
      if (reference === undefined) {
        t.equal(link, undefined, 'in the form of RFC 8288')
        break
      }
      t.ok(!/^[a-z]+:|^\/\//i.test(reference), 'a relative reference')
      const next: URL = new URL(reference, origin + target)
      t.equal(next.origin, origin)
      const cursor = next.searchParams.get('cursor')
      t.equal(cursor, heard.json.page.next_cursor, 'with the cursor of the body')
      target = next.pathname + next.search
    }
    t.strictSame(slugs, expected, `following the links of ${query}`)
    t.ok(expected.length > 1, 'over several pages')
  }
}

async function changes(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const line = world.lines.profiles.find(({ slug }) => slug === 'bare')
  const before = byName(publicSet(world.lines, 'demo')).map(({ slug }) => slug)
  const made: string[] = []
  const pages = await walk(t, service, '', 10, async (count) => {
    // One row before what was read and one after it, with every page.
    for (const name of [`0 first ${count}`, `zzz last ${count}`]) {
      const slug = name.replaceAll(' ', '-')
      made.push(slug)
      await world.publish('profiles', [{ ...line, slug, name }])
    }
  })
  const found = pages.flat()
  t.strictSame(found.filter((slug) => !made.includes(slug)), before, 'rows that stay come once, in order')
  t.equal(new Set(found).size, found.length, 'none comes twice')

  // The row of the cursor's position is removed as well.
  const cursor = await cursorOf(service, 'limit=3')
  const [[, , last] = [], ...rest] = await walk(t, service, '', 3)
  t.ok(made.includes(last ?? ''), 'the position is a row that was added')
  await world.remove('profiles', made)
  const survivors = rest.flat().filter((slug) => !made.includes(slug))
  const { data }: { data: { slug: string }[] } = (await page(service, `limit=100&cursor=${cursor}`)).json
  t.strictSame(data.map(({ slug }) => slug), survivors, 'a cursor is valid after its row was removed')
}

async function altered(t: Tester, service: Service): Promise<void> {
  const cursor = decodeURIComponent(await cursorOf(service, 'limit=3'))
  t.equal((await page(service, `cursor=${encodeURIComponent(cursor)}`)).status, 200, 'as it was given')
  // core/properties tries every place.
  for (let index = 0; index < cursor.length; index += 9) {
    const other = cursor[index] === 'A' ? 'B' : 'A'
    const changed = cursor.slice(0, index) + other + cursor.slice(index + 1)
    expectProblem(t, await page(service, `cursor=${changed}`), 'invalid_cursor', `at ${index}`)
  }
  const half = Math.floor(cursor.length / 2)
  const forms = [
    cursor.slice(1),
    cursor.slice(0, -1),
    cursor.slice(0, half),
    `${cursor}A`,
    `${cursor}=`,
    ` ${cursor}`,
    cursor + cursor,
    cursor.slice(half) + cursor.slice(0, half),
    swapCase(cursor),
    'A'.repeat(200),
    `.${'0'.repeat(32)}`,
    ...['A', 'null', '0', '.', '😀', '\0'],
  ]
  for (const form of forms) {
    const heard = await page(service, `cursor=${encodeURIComponent(form)}`)
    expectProblem(t, heard, 'invalid_cursor', JSON.stringify(form.slice(0, 30)))
  }
  t.equal((await page(service, 'cursor=')).status, 400, 'an empty one is not the first page')
}

async function others(t: Tester, service: Service): Promise<void> {
  const query = 'country=FR&country=US&limit=2'
  const cursor = await cursorOf(service, query)
  t.equal((await page(service, `${query}&cursor=${cursor}`)).status, 200, 'with its own query')
  const foreign = [
    'limit=2',
    'country=FR&limit=2',
    'country=FR&country=US&country=DE&limit=2',
    'country=FR&country=US&industry=software&limit=2',
    'country=FR&country=US&q=maps&limit=2',
    'country=FR&country=US&sort=-published_at&limit=2',
    'industry=software&limit=2',
  ]
  for (const other of foreign) {
    expectProblem(t, await page(service, `${other}&cursor=${cursor}`), 'invalid_cursor', `with ${other}`)
  }
  const acme = await page(service, `${query}&cursor=${cursor}`, 'acme')
  expectProblem(t, acme, 'invalid_cursor', 'with the same query of another partner')
  const newest = await cursorOf(service, 'sort=-published_at&limit=2')
  expectProblem(t, await page(service, `limit=2&cursor=${newest}`), 'invalid_cursor', 'of the other order')
  const sibling = { key: service.world.keys['demo profiles'] }
  const path = `/public/profiles?partner=demo&${query}&cursor=${cursor}`
  t.equal((await get(service, path, sibling)).status, 200, 'another key of the same partner may go on')
}

function swapCase(text: string): string {
  return text.replace(
    /./g,
    (letter) => letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
  )
}

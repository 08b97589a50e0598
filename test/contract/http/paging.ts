/** Section 4: the pages together are the list, and a cursor is valid for one query of one partner. */
import { expectProblem } from './expect.ts'
import { byName, newestFirst, publicSet } from './oracle.ts'
import { get, type Service, type Suite, type TestContext, type TestResponse, withKey } from './service.ts'

export const paging: readonly Suite[] = [{
  tests: {
    'following next_cursor yields each profile once, in order': pagesInOrder,
    'Link has the URL of the next page': nextPageLinks,
    'an altered cursor is refused with 400 invalid_cursor': alteredCursors,
    'a cursor of another query or partner is refused': foreignCursors,
  },
}, {
  changesContent: true,
  tests: {
    'paging skips and repeats no profile while others are added and removed': pagingDuringChanges,
    'a cursor has at most 1,000 characters, whatever the names are': longNames,
  },
}]

function getPage(service: Service, query: string, partner: 'demo' | 'acme' = 'demo'): Promise<TestResponse> {
  const key = service.world.keys[`${partner} full`]
  return get(service, `/public/profiles?partner=${partner}&${query}`, { key })
}

async function cursorOf(service: Service, query: string): Promise<string> {
  const cursor: unknown = (await getPage(service, query)).json?.page?.next_cursor
  if (typeof cursor !== 'string') throw new Error(`no next_cursor for ${query}`)
  return encodeURIComponent(cursor)
}

/** Follows `next_cursor` to the end. @returns The slugs of each page. */
async function readPages(
  t: TestContext,
  service: Service,
  query: string,
  limit: number,
  between?: (pages: number) => Promise<void>,
): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor = ''; pages.length < 200;) {
    const { json, status } = await getPage(service, `${query}&limit=${limit}${cursor}`)
    if (status !== 200) throw new Error(`page ${pages.length + 1}: ${status}`)
    const { limit: reported, has_more: more, next_cursor: next } = json.page
    const expected = [limit, next !== null, more ? 'string' : 'object']
    t.strictSame([reported, more, typeof next], expected, '`page` is consistent')
    pages.push(json.data.map(({ slug }: { slug: string }) => slug))
    if (next === null) return pages
    t.ok(next.length <= 1000, `a cursor of ${next.length} characters`)
    await between?.(pages.length)
    cursor = `&cursor=${encodeURIComponent(next)}`
  }
  throw new Error('paging does not end')
}

async function pagesInOrder(t: TestContext, service: Service): Promise<void> {
  const visible = publicSet(service.world.lines, 'demo')
  const [all, newest] = [byName(visible), newestFirst(visible)].map((lines) => lines.map(({ slug }) => slug))
  for (const [query, expected = []] of [['', all], ['sort=-published_at', newest]] as const) {
    for (const limit of [query === '' ? 1 : 3, 7, expected.length - 1, expected.length]) {
      const pages = await readPages(t, service, query, limit)
      t.strictSame(pages.flat(), expected, `${query}, ${limit} at a time, yields each once and in order`)
      t.equal(pages.length, Math.ceil(expected.length / limit), 'the number of pages fits the limit')
    }
  }
  const filtered = visible.filter(({ country }) => ['FR', 'US', 'JP'].includes(country))
  const pages = await readPages(t, service, 'country=FR&country=US&country=JP&sort=-published_at', 2)
  t.strictSame(pages.flat(), newestFirst(filtered).map(({ slug }) => slug), 'with a filter')
  const found = await readPages(t, service, 'q=ca', 2)
  t.ok(found.flat().length > 6, 'a search has several pages')
  const empty = { limit: 20, has_more: false, next_cursor: null }
  t.strictSame((await getPage(service, 'industry=no-such')).json, { data: [], page: empty }, 'an empty page')

  const start = await cursorOf(service, 'limit=3')
  const wider: readonly { slug: string }[] = (await getPage(service, `limit=10&cursor=${start}`)).json.data
  t.strictSame(wider.map(({ slug }) => slug), all?.slice(3, 13), 'the limit may change between pages')
}

async function nextPageLinks(t: TestContext, service: Service): Promise<void> {
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
    const expected = (await readPages(t, service, query.replace(/&?limit=\d+/, ''), 7)).flat()
    while (target !== undefined) {
      const response: TestResponse = await send({ target, headers })
      if (response.status !== 200) throw new Error(`${target}: ${response.status}`)
      slugs.push(...response.json.data.map(({ slug }: { slug: string }) => slug))
      const link = response.headers.get('link')
      t.equal(link !== undefined, response.json.page.has_more, 'there is a link exactly while there are more')
      const [, reference] = /^<([^<>]*)>; rel="next"$/.exec(link ?? '') ?? []
      if (reference === undefined) {
        t.equal(link, undefined, 'the link has the form of RFC 8288')
        break
      }
      t.ok(reference.startsWith('profiles?'), 'a relative reference of the last segment and the query')
      const next: URL = new URL(reference, origin + target)
      t.equal(next.origin, origin)
      const cursor = next.searchParams.get('cursor')
      t.equal(cursor, response.json.page.next_cursor, 'the link has the cursor of the body')
      target = next.pathname + next.search
    }
    t.strictSame(slugs, expected, `following the links of ${query}`)
    t.ok(expected.length > 1, 'over several pages')
  }
}

async function pagingDuringChanges(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const line = world.lines.profiles.find(({ slug }) => slug === 'bare')
  const before = byName(publicSet(world.lines, 'demo')).map(({ slug }) => slug)
  const made: string[] = []
  const pages = await readPages(t, service, '', 10, async (count) => {
    // With every page, adds one row before the position and one after it.
    for (const name of [`0 first ${count}`, `zzz last ${count}`]) {
      const slug = name.replaceAll(' ', '-')
      made.push(slug)
      await world.publish('profiles', [{ ...line, slug, name }])
    }
  })
  const found = pages.flat()
  t.strictSame(
    found.filter((slug) => !made.includes(slug)),
    before,
    'unchanged rows are listed once, in order',
  )
  t.equal(new Set(found).size, found.length, 'no row is listed twice')

  // The row of the cursor's position is removed as well.
  const cursor = await cursorOf(service, 'limit=3')
  const [[, , last] = [], ...rest] = await readPages(t, service, '', 3)
  t.ok(made.includes(last ?? ''), 'the cursor points to an added row')
  await world.remove('profiles', made)
  const survivors = rest.flat().filter((slug) => !made.includes(slug))
  const { data }: { data: { slug: string }[] } = (await getPage(service, `limit=100&cursor=${cursor}`)).json
  t.strictSame(data.map(({ slug }) => slug), survivors, 'a cursor stays valid after its row was removed')
}

async function longNames(t: TestContext, service: Service): Promise<void> {
  const { lines, publish, remove } = service.world
  const line = lines.profiles[0]!
  // The first has 18 letters once folded, the second four bytes in UTF-8, and JSON escapes the third.
  const names = ['\ufdfa', '\u{20000}', '\u0001'].flatMap((character) =>
    ['', '', 'b', 'a'].map((end) => character.repeat(200 - end.length) + end)
  )
  const more = names.map((name, index) => ({
    ...line,
    slug: `${index + 10}${'x'.repeat(78)}`,
    name,
    visible_to: null,
  }))
  await publish('profiles', more)
  const slugs = more.map(({ slug }) => slug)
  const found = (await readPages(t, service, '', 1)).flat().filter((slug) => slugs.includes(slug))
  t.strictSame(found, byName(more).map(({ slug }) => slug), 'the list is read to its end, in order')
  await remove('profiles', slugs)
}

async function alteredCursors(t: TestContext, service: Service): Promise<void> {
  const cursor = decodeURIComponent(await cursorOf(service, 'limit=3'))
  t.equal(
    (await getPage(service, `cursor=${encodeURIComponent(cursor)}`)).status,
    200,
    'the unaltered cursor is valid',
  )
  // Every ninth character; core/properties.test.ts alters any.
  for (let index = 0; index < cursor.length; index += 9) {
    const other = cursor[index] === 'A' ? 'B' : 'A'
    const changed = cursor.slice(0, index) + other + cursor.slice(index + 1)
    expectProblem(t, await getPage(service, `cursor=${changed}`), 'invalid_cursor', `at ${index}`)
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
    'A',
    'null',
    '0',
    '.',
    '😀',
    '\0',
  ]
  for (const form of forms) {
    const response = await getPage(service, `cursor=${encodeURIComponent(form)}`)
    expectProblem(t, response, 'invalid_cursor', JSON.stringify(form.slice(0, 30)))
  }
  t.equal((await getPage(service, 'cursor=')).status, 400, 'an empty cursor is refused')
}

async function foreignCursors(t: TestContext, service: Service): Promise<void> {
  const query = 'country=FR&country=US&limit=2'
  const cursor = await cursorOf(service, query)
  t.equal(
    (await getPage(service, `${query}&cursor=${cursor}`)).status,
    200,
    'the cursor is valid with its own query',
  )
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
    expectProblem(t, await getPage(service, `${other}&cursor=${cursor}`), 'invalid_cursor', `with ${other}`)
  }
  const acme = await getPage(service, `${query}&cursor=${cursor}`, 'acme')
  expectProblem(t, acme, 'invalid_cursor', 'with the same query of another partner')
  const newest = await cursorOf(service, 'sort=-published_at&limit=2')
  expectProblem(
    t,
    await getPage(service, `limit=2&cursor=${newest}`),
    'invalid_cursor',
    'a cursor of the other order',
  )
  const sibling = { key: service.world.keys['demo profiles'] }
  const path = `/public/profiles?partner=demo&${query}&cursor=${cursor}`
  t.equal((await get(service, path, sibling)).status, 200, 'another key of the same partner may continue')
}

function swapCase(text: string): string {
  return text.replace(
    /./g,
    (letter) => letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
  )
}

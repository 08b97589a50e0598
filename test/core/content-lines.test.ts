import { readFileSync } from 'node:fs'
import process from 'node:process'
import { test } from 'tap'
import * as v from 'valibot'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import {
  COUNTRY_CODES,
  countryName,
  currencyExponent,
  isCountryCode,
  isCurrencyCode,
  isLocale,
} from '../../core/content/iso-codes.ts'
import type { LineError, LineErrors } from '../../core/content/line-reader.ts'
import { createLineReader, formatContentLine, importContent } from '../../core/content/lines.ts'
import { parseInstant } from '../../core/lib/time.ts'
import { CONTENT_KINDS, type ContentKind, type ContentRecords } from '../../core/ports/content.ts'
import { convert, type JsonSchema } from '../../core/schemas/json-schema.ts'
import { bannerSchema, plansSchema, profileSchema } from '../../core/schemas/content.ts'
import { exported } from '../contract/store/samples.ts'
import { openMemoryStore } from '../support/memory-store.ts'

type Line = Record<string, unknown>

/** A valid line of each kind, with every field. */
const right: Record<ContentKind, Line> = {
  profiles: {
    slug: 'weaver',
    name: 'Weaver',
    headline: 'Cloth',
    country: 'SE',
    industry: 'textiles',
    published_at: '2025-05-12T09:50:00.000Z',
    logo_url: 'https://assets.example/a.svg',
    description: 'Text\nwith lines',
    website_url: 'http://weaver.example',
    city: 'Östersund',
    founded_year: 1088,
    employees: { min: 1, max: 10 },
    tags: ['wool'],
    contact: { email: 'a@b.example', phone: '+46 8' },
    links: [{ rel: 'press', url: 'https://weaver.example/press' }],
    visible_to: ['acme'],
  },
  industries: { slug: 'textiles', name: 'Textiles', parent_slug: null },
  plans: {
    slug: 'starter',
    name: 'Starter',
    description: 'One site',
    price: { amount_minor: 1900, currency: 'EUR' },
    interval: 'month',
    features: ['One'],
    highlighted: true,
    position: -1,
  },
  banners: {
    partner: 'demo',
    title: 'Meet',
    body: 'Text',
    image_url: 'https://assets.example/b.jpg',
    image_alt: 'A loom',
    link_url: 'https://demo.example/',
    link_label: 'Go',
    starts_at: '2023-01-01T00:00:00.000Z',
    ends_at: '2023-01-01T00:00:00.001Z',
  },
}

function readLines<K extends ContentKind>(
  kind: K,
  lines: Iterable<string>,
): { readonly records: readonly ContentRecords[K][] } | LineErrors {
  const reader = createLineReader(kind)
  const records = Array.from(lines, (line) => reader.read(line)).filter((record) => record !== undefined)
  return reader.finish() ?? { records }
}

const textOf = (line: Line | string): string => typeof line === 'string' ? line : JSON.stringify(line)

function errorsOf(kind: ContentKind, ...lines: (Line | string)[]): readonly LineError[] {
  const read = readLines(kind, lines.map(textOf))
  return 'errors' in read ? read.errors : []
}

function recordsOf<K extends ContentKind>(kind: K, lines: Iterable<string>): readonly ContentRecords[K][] {
  const read = readLines(kind, lines)
  if ('errors' in read) throw new Error(JSON.stringify(read.errors))
  return read.records
}

/** Base62 text in the format of a key, without a valid checksum. */
const keyShaped = `spk_live_Zt81Zt81Zt81_${'0123456789'.repeat(4).slice(0, 38)}`

test('exporting imported lines yields the same bytes', (t) => {
  for (const kind of CONTENT_KINDS) {
    const text = readFileSync(new URL(`../../fixtures/content/${kind}.jsonl`, import.meta.url), 'utf8')
    for (const lines of [text.trimEnd().split('\n'), [JSON.stringify(right[kind])]]) {
      t.same(recordsOf(kind, lines).map((record) => formatContentLine(kind, record)), lines, kind)
    }
  }
  t.end()
})

test('only optional fields may be absent or null', (t) => {
  const required: Record<ContentKind, string[]> = {
    profiles: ['slug', 'name', 'headline', 'country', 'industry', 'published_at'],
    industries: ['slug', 'name'],
    plans: ['slug', 'name', 'description', 'price', 'interval', 'features'],
    banners: ['partner', 'title'],
  }
  for (const kind of CONTENT_KINDS) {
    for (const field of Object.keys(right[kind])) {
      const { [field]: _, ...without } = right[kind]
      const missing = errorsOf(kind, without)
      const nulled = errorsOf(kind, { ...without, [field]: null })
      const isRequired = required[kind].includes(field)
      const expected = isRequired ? [{ line: 1, field, reason: 'is missing' }] : []
      t.same(missing, expected, `${kind} without ${field}`)
      t.equal(nulled.length, isRequired && field !== 'published_at' ? 1 : 0, `${kind} with ${field} null`)
    }
  }
  t.end()
})

test('an invalid field is reported with its path and the expected value', (t) => {
  const long = (length: number) => 'é'.repeat(length)
  const wrong: [ContentKind, Line, string, RegExp][] = [
    ['profiles', { slug: 'Weaver' }, 'slug', /^must be a slug .* not "Weaver"$/],
    ['profiles', { slug: '-weaver' }, 'slug', /slug/],
    ['profiles', { slug: 'a'.repeat(81) }, 'slug', /slug/],
    ['profiles', { slug: 'a\n' }, 'slug', /not "a\\n"$/],
    ['profiles', { slug: 7 }, 'slug', /not 7$/],
    ['profiles', { slug: 'recent' }, 'slug', /^must be a slug .* other than "recent", not "recent"$/],
    ['profiles', { name: '' }, 'name', /^must have 1–200 characters, not 0$/],
    ['profiles', { name: long(201) }, 'name', /not 201$/],
    ['profiles', { name: 'a\0b' }, 'name', /NUL/],
    ['profiles', { name: 'a\ud800b' }, 'name', /surrogate/],
    ['profiles', { name: keyShaped }, 'name', /must not contain a key/],
    ['profiles', { headline: long(301) }, 'headline', /1–300/],
    ['profiles', { description: long(5_001) }, 'description', /1–5000/],
    ['profiles', { country: 'se' }, 'country', /upper case, not "se"$/],
    ['profiles', { country: 'EU' }, 'country', /ISO 3166-1/],
    ['profiles', { country: 'toString' }, 'country', /ISO 3166-1/],
    ['profiles', { published_at: '2025-02-29T00:00:00Z' }, 'published_at', /RFC 3339/],
    ['profiles', { published_at: '2025-05-12' }, 'published_at', /RFC 3339/],
    ['profiles', { published_at: 0 }, 'published_at', /RFC 3339.* not 0$/],
    ['profiles', { logo_url: 'ftp://a.example' }, 'logo_url', /http or https/],
    ['profiles', { logo_url: '/a.svg' }, 'logo_url', /absolute/],
    ['profiles', { website_url: 'javascript:alert(1)' }, 'website_url', /http or https/],
    ['profiles', { website_url: 'https://a.example/ b' }, 'website_url', /http or https/],
    ['profiles', { website_url: 'https://a.example:99999/' }, 'website_url', /http or https/],
    ['profiles', { website_url: `https://a.example/${'a'.repeat(2_048)}` }, 'website_url', /1–2048/],
    ['profiles', { city: '' }, 'city', /1–200/],
    ['profiles', { founded_year: 1999.5 }, 'founded_year', /whole number/],
    ['profiles', { founded_year: 0 }, 'founded_year', /from 1 to 9999/],
    ['profiles', { employees: { min: 2, max: 1 } }, 'employees.max', /at least min/],
    ['profiles', { employees: { min: -1 } }, 'employees.min', /from 0, not -1/],
    ['profiles', { employees: { min: 2 ** 53 } }, 'employees.min', /whole number/],
    ['profiles', { employees: [1, 2] }, 'employees', /an object, not a list/],
    ['profiles', { employees: { most: 2 } }, 'employees.most', /is not a known field/],
    ['profiles', { tags: Array(21).fill('a') }, 'tags', /at most 20 items, not 21/],
    ['profiles', { tags: ['a', long(51)] }, 'tags[1]', /1–50/],
    ['profiles', { tags: 'wool' }, 'tags', /a list, not "wool"/],
    ['profiles', { contact: { email: 'nobody' } }, 'contact.email', /e-mail/],
    ['profiles', { links: [{ rel: 'a', url: 'b' }] }, 'links[0].url', /absolute/],
    ['profiles', { links: [{ rel: 'a' }] }, 'links[0].url', /is missing/],
    ['profiles', { links: Array(21).fill({ rel: 'a', url: 'https://a.example' }) }, 'links', /at most 20/],
    ['profiles', { visible_to: ['acme', 'acme'] }, 'visible_to', /not name "acme" twice/],
    ['profiles', { visible_to: ['Acme'] }, 'visible_to[0]', /slug/],
    ['profiles', { tag: ['a'] }, 'tag', /is not a known field/],
    ['profiles', { constructor: 1 }, 'constructor', /is not a known field/],
    ['industries', { parent_slug: 'textiles' }, 'parent_slug', /circle: textiles → textiles/],
    ['plans', { price: { amount_minor: 1.5, currency: 'EUR' } }, 'price.amount_minor', /whole number from 0/],
    ['plans', { price: { amount_minor: '1', currency: 'EUR' } }, 'price.amount_minor', /not "1"/],
    ['plans', { price: { amount_minor: 1, currency: 'eur' } }, 'price.currency', /upper case/],
    ['plans', { price: { amount_minor: 1, currency: 'XXX' } }, 'price.currency', /ISO 4217/],
    ['plans', { interval: 'week' }, 'interval', /month, year or once, not "week"/],
    ['plans', { features: Array(51).fill('a') }, 'features', /at most 50/],
    ['plans', { highlighted: 1 }, 'highlighted', /true or false, not 1/],
    ['plans', { position: 0.5 }, 'position', /whole number, not 0.5/],
    ['banners', { ends_at: '2023-01-01T00:00:00.000Z' }, 'ends_at', /after starts_at/],
    ['banners', { partner: 'DEMO' }, 'partner', /slug/],
  ]
  for (const [kind, change, field, reason] of wrong) {
    const name = `${kind} ${JSON.stringify(change).slice(0, 60)}`
    t.match(errorsOf(kind, { ...right[kind], ...change }), [{ line: 1, field, reason }], name)
    t.equal(errorsOf(kind, { ...right[kind], ...change }).length, 1, `${name}: once`)
  }
  t.match(errorsOf('plans', '{"__proto__":1}'), [{ field: '__proto__', reason: /is not a known field/ }])
  t.end()
})

test('values at their limits are valid', (t) => {
  const at: [ContentKind, Line][] = [
    ['profiles', { slug: '0'.repeat(80), name: '\u{1F9F6}'.repeat(200), headline: 'é'.repeat(300) }],
    ['profiles', { description: 'é'.repeat(5_000), employees: { min: 3, max: 3 }, visible_to: [] }],
    ['profiles', { tags: Array(20).fill('é'.repeat(50)), country: 'XK', founded_year: 9999 }],
    ['profiles', { website_url: `https://a.example/${'a'.repeat(2_048 - 18)}`, employees: {} }],
    ['plans', { features: Array(50).fill('a'), price: { amount_minor: 0, currency: 'UYW' } }],
  ]
  for (const [kind, change] of at) t.same(errorsOf(kind, { ...right[kind], ...change }), [])
  t.end()
})

/** The texts within a schema: the path of each with its greatest length. */
function* lengthsIn(
  { properties = {}, items, maxLength }: JsonSchema,
  path: readonly string[] = [],
): Generator<readonly [path: readonly string[], maxLength: number]> {
  if (typeof maxLength === 'number') yield [path, maxLength]
  if (items !== undefined) yield* lengthsIn(items, [...path, '0'])
  for (const [name, one] of Object.entries(properties)) yield* lengthsIn(one, [...path, name])
}

test('texts of responses are as long as those of lines', (t) => {
  const responses = { profiles: profileSchema, banners: bannerSchema, plans: plansSchema }
  for (const [kind, schema] of Object.entries(responses)) {
    const lengths = [...lengthsIn(convert(schema).items ?? convert(schema))].filter(([[name, member]]) =>
      // Of other forms in lines.
      !/^(?:slug|country|industry|\w+_at)$/.test(name!) && member !== 'currency'
    )
    t.ok(lengths.length >= 3)
    for (const [path, maxLength] of lengths) {
      const line: Line = structuredClone(right[kind as ContentKind])
      const parent = path.slice(0, -1).reduce((value, step) => value[step] as Line, line)
      parent[path.at(-1)!] = 'x'.repeat(maxLength + 1)
      const reason = `must have 1–${maxLength} characters, not ${maxLength + 1}`
      t.match(errorsOf(kind as ContentKind, line), [{ reason }], `${kind} ${path.join('.')}`)
    }
  }
  t.end()
})

test('all errors are reported at once, by line', (t) => {
  const { title: _, ...untitled } = right.banners
  const errors = errorsOf('banners', right.banners, '', {
    ...untitled,
    partner: 'DEMO',
    ends_at: '2022-01-01T00:00:00Z',
  })
  t.same(errors.map(({ line, field }) => [line, field]), [[3, 'partner'], [3, 'title'], [3, 'ends_at']])
  const circle = errorsOf(
    'industries',
    { slug: 'a', name: 'A', parent_slug: 'b' },
    { slug: 'b', name: '', parent_slug: 'a' },
    { slug: 'c', name: 'C', parent_slug: 'a' },
  )
  const places = circle.map(({ line, field }) => `${line} ${field}`)
  t.same(places, ['1 parent_slug', '2 name', '2 parent_slug'])
  t.end()
})

test('all errors are reported, also where the host has set valibot to stop at the first one', (t) => {
  v.setGlobalConfig({ abortEarly: true })
  t.teardown(() => v.deleteGlobalConfig())
  const reader = createLineReader('industries')
  reader.read('{"slug":"A","name":""}')
  t.strictSame(reader.finish()?.errors.map(({ field }) => field), ['slug', 'name'])
  t.end()
})

test('unknown names, at any depth, come before invalid values, by the names of lines', (t) => {
  const price = { amount_minor: -1, currency: 'EUR', tax: 1 }
  const errors = errorsOf('plans', { ...right.plans, slug: 'B', price, ends: 1 })
  t.same(errors.map(({ field }) => field), ['ends', 'price.tax', 'slug', 'price.amount_minor'])
  t.match(errorsOf('profiles', { ...right.profiles, publishedAt: 1 }), [{ field: 'publishedAt' }])
  t.end()
})

test('a check of several fields looks at those that are valid', (t) => {
  const visible = { ...right.profiles, visible_to: ['a', 'B', 'B', 3, 'a'] }
  const errors = errorsOf('profiles', visible).map(({ field, reason }) => `${field} ${reason}`)
  t.match(errors, [
    /^visible_to\[1\] must be a slug/,
    /^visible_to\[2\] must be a slug/,
    'visible_to[3] must be a slug, not 3',
    'visible_to must not name "a" twice',
  ])
  t.same(errorsOf('profiles', { ...right.profiles, employees: { min: 'x', max: 1 } }).length, 1)
  t.end()
})

test('duplicate members are refused at any depth', (t) => {
  const reason = 'has two members of one name in an object'
  const twice = [
    '{"slug":"a","name":"A","slug":"b"}',
    '{"slug":"a","name":"A","sl\\u0075g":"b"}',
    '{"slug":"a","name":"A","more":[{"x":1,"x":1}]}',
  ]
  t.same(errorsOf('industries', ...twice), [1, 2, 3].map((line) => ({ line, field: null, reason })))
  const long = JSON.stringify({ slug: 'a', name: '\\"'.repeat(200_000) })
  t.match(errorsOf('industries', long), [{ line: 1, field: 'name' }], 'a long string is read in full')
  t.end()
})

test('a repeated slug is reported with the line of its first use', (t) => {
  const line = { slug: 'a', name: 'A' }
  t.same(errorsOf('industries', line, { slug: 'b', name: 'B' }, line, line), [
    { line: 3, field: 'slug', reason: 'repeats "a" of line 1' },
    { line: 4, field: 'slug', reason: 'repeats "a" of line 1' },
  ])
  t.match(errorsOf('banners', right.banners, right.banners), [{ line: 2, field: 'partner' }])
  t.end()
})

test('a thousand errors are listed, and all are counted', (t) => {
  const read = readLines('plans', Array(1_500).fill('{'))
  t.same('errors' in read && [read.errors.length, read.errorCount], [1_000, 1_500])
  t.end()
})

test('lines other than JSON objects are refused', (t) => {
  const reasons = { [`{"secret":"${keyShaped}`]: 'is not JSON at character 11' }
  for (const line of ['[]', '1', 'null', '"a"']) reasons[line] = 'must be a JSON object'
  for (const [line, reason] of Object.entries(reasons)) {
    t.same(errorsOf('plans', line), [{ line: 1, field: null, reason }], line)
  }
  t.end()
})

test('the place where a line is no longer JSON', (t) => {
  // Before and from the wrong token, or the end.
  const cases = [
    '|hello',
    "{|'a':1}",
    '{|a:1}',
    '{"a":1,|}',
    '{"a":1 |"b":2}',
    '{"a":|tru}',
    '{"a":0|1}',
    '{"a"|}',
    '{"a":1,"b"|}',
    '{"a":|,}',
    '{"a":|"\\q"}',
    '{"a":[1,|]}',
    '[1|}',
    '{"a":1}|}',
    ' {} |x',
    '[[]|',
    '{"a":|"b',
    '{"a":{"b":[true,null,-1.5e3,"\\u00e4"]}} |,',
    '{"a" |1}',
    '[1 |2]',
    '{"a":1|',
    '{|',
  ]
  for (const text of cases) {
    const reason = `is not JSON at character ${text.indexOf('|') + 1}`
    t.match(errorsOf('plans', text.replace('|', '')), [{ reason }], text)
  }
  t.end()
})

test('a leading byte-order mark, CRLF and blank lines are accepted, and blank lines counted', (t) => {
  const line = JSON.stringify(right.industries)
  t.equal(recordsOf('industries', [`\uFEFF${line}\r`, '\r', ' ', '']).length, 1)
  t.match(errorsOf('industries', `\uFEFF${line}\r`, '\r', '', 'x\r'), [{ line: 4 }])
  t.match(errorsOf('industries', line, `\uFEFF${line}`), [{ line: 2, reason: 'is not JSON at character 1' }])
  t.end()
})

test('no error contains a key', (t) => {
  for (const kind of CONTENT_KINDS) {
    const fields = Object.keys(right[kind])
    const lines = fields.map((field) => ({ ...right[kind], [field]: keyShaped }))
    const nested = fields.map((field) => ({ ...right[kind], [field]: { [keyShaped]: [keyShaped] } }))
    const errors = errorsOf(kind, ...lines, ...nested, { ...right[kind], [keyShaped]: 1 })
    t.ok(errors.length >= 2 * fields.length)
    t.notMatch(JSON.stringify(errors), /0123456789/, kind)
  }
  t.end()
})

test('values in errors are truncated and have no control characters', (t) => {
  const [error] = errorsOf('plans', {
    ...right.plans,
    interval: `\u001b[2J\u009b\u202e${'x'.repeat(10_000)}`,
  })
  t.ok(error !== undefined && error.reason.length < 200)
  t.notMatch(error?.reason, /[\p{Cc}\p{Cf}]/u)
  t.end()
})

/** A store with the partners `acme` and `gone` (removed), the industry `textiles` and its child `wool`. */
async function openStore() {
  const store = await openMemoryStore()
  const partners = createPartnerAdministration(store, { actor: 'operator' })
  for (const slug of ['acme', 'gone']) await partners.create({ slug, name: slug, modules: [] })
  await store.apply([{ type: 'partner.removed', slug: 'gone' }], (await store.revision()).facts, {
    actor: 'operator',
    at: 1,
  })
  await store.importContent('industries', [
    { slug: 'textiles', name: 'Textiles', parentSlug: undefined },
    { slug: 'wool', name: 'Wool', parentSlug: 'textiles' },
  ], { now: 0, actor: 'operator' })
  const run = (kind: ContentKind, lines: (Line | string)[], dryRun = false) =>
    importContent(store, kind, lines.map(textOf), { now: 1, actor: 'operator', dryRun })
  return { store, run }
}

test('an import stores all records or none, and importing an export changes nothing', async (t) => {
  const { store, run } = await openStore()
  const lines = [right.profiles, { ...right.profiles, slug: 'other', visible_to: ['gone'] }]
  const empty = await store.revision()
  const invalid = { ...right.profiles, slug: 'third', name: '' }
  t.same(await run('profiles', lines, true), { created: 2, replaced: 0, unchanged: 0 })
  t.match(await run('profiles', [...lines, invalid]), { errorCount: 1 })
  t.same(await store.revision(), empty)
  t.same(await run('profiles', lines), { created: 2, replaced: 0, unchanged: 0 })
  const again = (await exported(store, 'profiles')).map((record) => formatContentLine('profiles', record))
  t.same(await run('profiles', again), { created: 0, replaced: 0, unchanged: 2 })
})

test('missing references are reported with other errors', async (t) => {
  const { run } = await openStore()
  const profile = { ...right.profiles, name: '', industry: 'silk', visible_to: ['acme', 'nobody', 'acme'] }
  t.match(await run('profiles', [profile]), {
    errors: [
      { line: 1, field: 'name' },
      { line: 1, field: 'industry', reason: 'must be an industry that exists, not "silk"' },
      { line: 1, field: 'visible_to[1]', reason: 'must be a partner that exists, not "nobody"' },
      { line: 1, field: 'visible_to', reason: 'must not name "acme" twice' },
    ],
    errorCount: 4,
  })
  t.match(await run('banners', [right.banners]), {
    errors: [{ field: 'partner', reason: /exists, not "demo"/ }],
  })
  t.match(await run('banners', [{ ...right.banners, partner: 'gone' }]), { created: 1 })
  t.match(await run('plans', [right.plans]), { created: 1 })
})

test('parents of industries are in the file, in any order, or in the store, without cycles', async (t) => {
  const { run } = await openStore()
  const industry = (slug: string, parent_slug: string | null) => ({ slug, name: slug, parent_slug })
  t.match(await run('industries', [industry('merino', 'sheep'), industry('sheep', 'wool')]), { created: 2 })
  t.match(await run('industries', [industry('linen', 'flax')]), {
    errors: [{ line: 1, field: 'parent_slug', reason: /in this file, not "flax"$/ }],
  })
  const circle = /circle: textiles → merino → sheep → wool → textiles$/
  t.match(await run('industries', [industry('silk', null), industry('textiles', 'merino')]), {
    errors: [{ line: 2, field: 'parent_slug', reason: circle }],
  }, 'a cycle through the store')
  const broken = await run('industries', [industry('wool', null), industry('textiles', 'merino')])
  t.match(broken, { replaced: 2 }, 'replacing a parent breaks the cycle')
})

test('a long cycle of industries is reported in linear time', async (t) => {
  const { run } = await openStore()
  const length = 3_000
  const chain = Array.from({ length }, (_, index) => ({
    slug: `i${index}`,
    name: 'a',
    parent_slug: `i${(index + length - 1) % length}`,
  }))
  t.match(await run('industries', chain), { errorCount: length, errors: [{ reason: /→ … → / }] })
})

test('many invalid items of a list are reported in linear time', (t) => {
  const count = 100_000
  const lists: readonly Line[] = [{ tags: Array(count).fill(1) }, { visible_to: Array(count).fill(1) }, {
    links: Array(count).fill({ rel: 1 }),
  }]
  for (const list of lists) {
    const reader = createLineReader('profiles')
    const before = process.threadCpuUsage()
    reader.read(JSON.stringify({ ...right.profiles, ...list }))
    t.ok((reader.finish()?.errorCount ?? 0) >= count)
    // A copy of the list for each error took minutes.
    t.ok(process.threadCpuUsage(before).user < 10_000_000)
  }
  t.end()
})

test('instants are RFC 3339 with an offset, truncated to milliseconds', (t) => {
  const right = {
    '2025-05-12T09:50:00Z': '2025-05-12T09:50:00.000Z',
    '2025-05-12t09:50:00.1z': '2025-05-12T09:50:00.100Z',
    '2025-05-12T09:50:00.1239999Z': '2025-05-12T09:50:00.123Z',
    '2025-05-12T00:30:00+05:45': '2025-05-11T18:45:00.000Z',
    '2025-05-12T23:30:00-01:00': '2025-05-13T00:30:00.000Z',
    '2025-05-12T23:30:00-00:00': '2025-05-12T23:30:00.000Z',
    '2024-02-29T00:00:00Z': '2024-02-29T00:00:00.000Z',
    '0050-01-01T00:00:00Z': '0050-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z': '9999-12-31T23:59:59.999Z',
    '1990-12-31T15:59:60-08:00': '1991-01-01T00:00:00.000Z',
  }
  for (const [text, expected] of Object.entries(right)) {
    t.equal(parseInstant(text), Date.parse(expected), text)
  }
  const days = '2025-02-29 2100-02-29 2025-04-31 2025-13-01 2025-00-01 2025-01-00 2025-1-1 ２025-01-01'
  const times = [
    ...'24:00:00Z 00:60:00Z 23:59:60Z 00:00:00 00:00:00+24:00 00:00:00+00:60 00:00:00+0100'.split(' '),
    '00:00:00.Z',
    '00:00Z',
    '00:00:00Z\n',
  ]
  const wrong = [
    ...days.split(' ').map((day) => `${day}T00:00:00Z`),
    ...times.map((time) => `2025-01-01T${time}`),
    '2025-01-01 00:00:00Z',
    '+002025-01-01T00:00:00Z',
    '',
    '9999-12-31T23:59:59-00:01',
    '0000-01-01T00:00:00+00:01',
  ]
  t.same(wrong.filter((text) => parseInstant(text) !== undefined), [])
  t.end()
})

test('countries are the 249 assigned by ISO 3166-1, and Kosovo', (t) => {
  t.equal(COUNTRY_CODES.length, 250)
  t.same([...COUNTRY_CODES].sort(), COUNTRY_CODES)
  t.equal(new Set(COUNTRY_CODES).size, 250)
  const named = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
  // Codes that CLDR names beyond ISO 3166-1: exceptional reservations, withdrawn codes, groupings and pseudo-codes.
  const others =
    'AC AN BU CP CQ CS CT DD DG DY EA EU EZ FQ FX HV IC JT MI NH NQ NT PC PU PZ QO RH SU TA TP UK UN VD ' +
    'WK XA XB YD YU ZR ZZ'
  const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ')
  const known = letters.flatMap((a) => letters.map((b) => a + b))
    .filter((code) => named.of(code) !== undefined && !others.split(' ').includes(code))
  t.same(known, COUNTRY_CODES)
  t.notOk(isCountryCode('se'))
  t.end()
})

test('every locale has names, and other text is no locale', (t) => {
  for (let index = 0; index < 70; index++) countryName('FR', `fr-x-v${index}`)
  t.equal(countryName('DE', 'de'), 'Deutschland', 'after many other locales')
  const unnamed = ['x-private', 'i-klingon', 'sgn-BE-FR', 'art-lojban', 'de-DE-1996-x-own', 'zh-cmn-Hant-TW']
  for (const locale of unnamed) {
    t.ok(isLocale(locale), `${locale} is well-formed`)
    t.ok(countryName('DE', locale), 'it has names')
  }
  for (const text of ['', 'e', 'en_US', 'en-', 'en-toolongsubtag', 'en--US', 'en, de']) {
    t.notOk(isLocale(text), text)
  }
  t.end()
})

test('currencies have the exponents of ISO 4217, not those of cash amounts', (t) => {
  const codes = ['JPY ISK UGX UYI', '', 'EUR HUF AFN MGA COP', 'KWD IQD TND LYD', 'CLF UYW']
  for (const [exponent, list] of codes.entries()) {
    for (const code of list.split(' ').filter(Boolean)) {
      t.strictSame([isCurrencyCode(code), currencyExponent(code)], [true, exponent], code)
    }
  }
  for (const code of ['XXX', 'XAU', 'XTS', 'DEM', 'HRK', 'eur', 'EURO', '']) {
    t.notOk(isCurrencyCode(code), code)
  }
  // Other codes of the runtime are withdrawn, have no minor unit, or are too new for the list.
  const missing = Intl.supportedValuesOf('currency').filter((code) => !isCurrencyCode(code))
  t.strictSame(missing.filter((code) => !/^(?:ANG|BGN|CUC|HRK|SLL|XDR|XSU|ZWL)$/.test(code)), [])
  t.end()
})

/** Checks what a directory of the embedder's own answers: types do not bind the rows of a database. */
import { echo } from '../admin/echo.ts'
import { after } from '../after.ts'
import type { ProfileCard } from '../model.ts'
import type { Directory, MaybePromise, ProfilePosition, ProfileSort } from '../ports.ts'
import { isCountryCode } from './countries.ts'
import { isRecord } from './fields.ts'
import { compareCodePoints, fold } from './fold.ts'
import { SLUG_PATTERN } from './slug.ts'

type Test = (value: unknown) => boolean
type Rule = readonly [member: string, holds: Test, expected: string]

const isSlug: Test = (value) => typeof value === 'string' && SLUG_PATTERN.test(value)
const isText: Test = (value) => typeof value === 'string' && value !== ''
/** In the years 0–9999, as RFC 3339 writes them. */
const isInstant: Test = (value) =>
  Number.isInteger(value) && Number(value) >= -62_167_219_200_000 && Number(value) <= 253_402_300_799_999
/** Databases say `null` for what is absent. */
const optional = (holds: Test): Test => (value) => value === undefined || value === null || holds(value)
const object = (members: Readonly<Record<string, Test>>): Test => (value) =>
  isRecord(value) && Object.entries(members).every(([name, holds]) => holds(value[name]))
const listOf = (holds: Test): Test => (value) => Array.isArray(value) && value.every(holds)

const instant = 'whole milliseconds since the epoch'
const cardRules: readonly Rule[] = [
  ['slug', isSlug, 'a slug'],
  ['name', isText, 'text'],
  ['headline', isText, 'text'],
  ['country', (value) => isCountryCode(String(value)), 'an ISO 3166-1 alpha-2 code or XK, in upper case'],
  ['industry', object({ slug: isSlug, name: isText }), 'an object with slug and name'],
  ['logoUrl', optional(isText), 'a URL or undefined'],
  ['publishedAt', isInstant, instant],
  ['updatedAt', isInstant, instant],
]
const count = optional(Number.isInteger)
const profileRules: readonly Rule[] = [
  ...cardRules,
  ...['description', 'websiteUrl', 'city'].map((name): Rule => [name, optional(isText), 'text or undefined']),
  ['foundedYear', count, 'an integer or undefined'],
  [
    'employees',
    (one) => one === undefined || object({ min: count, max: count })(one),
    '{min, max} or undefined',
  ],
  ['tags', listOf(isText), 'a list of texts'],
  [
    'contact',
    (one) => one === undefined || object({ email: optional(isText), phone: optional(isText) })(one),
    '{email, phone} or undefined',
  ],
  ['links', listOf(object({ rel: isText, url: isText })), 'a list of {rel, url}'],
]
const industryRules: readonly Rule[] = [
  ['slug', isSlug, 'a slug'],
  ['name', isText, 'text'],
  ['parentSlug', optional(isSlug), 'a slug or undefined'],
]

/** @throws {Error} for the first member that is wrong; the message names it and the slug of its row. */
function requireRow(row: unknown, kind: string, rules: readonly Rule[]): void {
  const members = isRecord(row) ? row : {}
  for (const [name, holds, expected] of rules) {
    if (holds(members[name])) continue
    throw new Error(
      `directory: ${kind} ${echo(members['slug'])}: ${name} must be ${expected}, not ${echo(members[name])}`,
    )
  }
}

function requireRows(rows: readonly unknown[], kind: string, rules: readonly Rule[]): void {
  if (!Array.isArray(rows)) throw new Error(`directory: ${kind} rows must be a list, not ${echo(rows)}`)
  for (const row of rows) requireRow(row, kind, rules)
}

/** @throws {Error} for a profile whose member is wrong. */
export function requireProfile(profile: unknown): void {
  requireRow(profile, 'profile', profileRules)
}

/**
 * The same directory, which throws for a row that could not be shown.
 *
 * @param report Gets what is wrong, once until something else is.
 */
export function checkedDirectory(
  directory: Directory,
  report: (fault: string) => void = () => {},
): Required<Directory> {
  let reported = ''
  const check = <T>(answer: MaybePromise<T>, validate: (answer: T) => void): MaybePromise<T> =>
    after(answer, (rows) => {
      try {
        validate(rows)
      } catch (error) {
        const { message } = error as Error
        if (message !== reported) report(reported = message)
        throw error
      }
      return rows
    })
  return {
    listProfiles: (partner, query, now) =>
      check(directory.listProfiles(partner, query, now), (rows) => requireRows(rows, 'profile', cardRules)),
    findProfile: (partner, slug, now) =>
      check(directory.findProfile(partner, slug, now), (profile) => profile && requireProfile(profile)),
    listIndustries: () =>
      check(directory.listIndustries(), (rows) => requireRows(rows, 'industry', industryRules)),
    countProfiles: (partner, by, now) =>
      check(directory.countProfiles(partner, by, now), (counts) => {
        if (!(counts instanceof Map)) {
          throw new Error(`directory: countProfiles must return a Map, not ${echo(counts)}`)
        }
      }),
    nextProfileChangeAt: (partner, now) => directory.nextProfileChangeAt(partner, now),
    directoryRevision: () => directory.directoryRevision?.() ?? '',
  }
}

/** Where a profile stands in an order of the directory. */
export function positionOf({ name, publishedAt, slug }: ProfileCard, sort: ProfileSort): ProfilePosition {
  return { key: sort === 'name' ? fold(name) : publishedAt, slug }
}

/** Compares two positions of one order. */
export function comparePositions(a: ProfilePosition, b: ProfilePosition): number {
  const byKey = typeof a.key === 'number' ? Number(b.key) - a.key : compareCodePoints(a.key, String(b.key))
  return byKey || compareCodePoints(a.slug, b.slug)
}

/**
 * Checks a directory of your own, for your tests: that its rows are well-formed, that the pages of both orders are in
 * order and hold the same profiles, that each profile is found by its slug, and that the counts are right.
 *
 * @param partner Slug of the partner that it is asked for, default `acme`.
 * @throws {Error} for the first thing that is wrong; the message names the slug and the member.
 */
export async function checkDirectory(directory: Directory, partner = 'acme'): Promise<void> {
  const now = Date.now()
  const checked = checkedDirectory(directory)
  const industries = new Set((await checked.listIndustries()).map(({ slug }) => slug))
  const fail = (slug: string, fault: string): never => {
    throw new Error(`directory: profile ${echo(slug)}: ${fault}`)
  }
  const slugs = { name: new Set<string>(), '-published_at': new Set<string>() }
  const tallies = { country: new Map<string, number>(), industry: new Map<string, number>() }
  for (const sort of ['name', '-published_at'] as const) {
    let last: ProfilePosition | undefined
    for (let more = true; more;) {
      const query = { words: [], countries: [], industries: [], sort, after: last, limit: 3 }
      const page = await checked.listProfiles(partner, query, now)
      if (page.length > 3) fail(page[3]!.slug, 'is one more than listProfiles was asked for')
      for (const row of page) {
        const position = positionOf(row, sort)
        if (last && comparePositions(last, position) >= 0) {
          fail(row.slug, `must not come after ${echo(last.slug)} when sorted by ${sort}`)
        }
        if (row.publishedAt > now) fail(row.slug, 'publishedAt is in the future')
        if (!industries.has(row.industry.slug)) fail(row.slug, 'industry is not among listIndustries')
        if ((await checked.findProfile(partner, row.slug, now))?.slug !== row.slug) {
          fail(row.slug, 'findProfile does not find it')
        }
        slugs[sort].add(row.slug)
        if (sort === 'name') {
          for (
            const [tally, key] of [[tallies.country, row.country], [
              tallies.industry,
              row.industry.slug,
            ]] as const
          ) {
            tally.set(key, (tally.get(key) ?? 0) + 1)
          }
        }
        last = position
      }
      more = page.length === 3
    }
  }
  for (const slug of slugs.name.symmetricDifference(slugs['-published_at'])) {
    fail(slug, 'is not in both orders')
  }
  for (const by of ['country', 'industry'] as const) {
    const counts = await checked.countProfiles(partner, by, now)
    for (const key of new Set([...counts.keys(), ...tallies[by].keys()])) {
      const [counted, listed] = [counts.get(key) ?? 0, tallies[by].get(key) ?? 0]
      if (counted === listed) continue
      throw new Error(
        `directory: countProfiles says ${counted} for ${by} ${echo(key)}, listProfiles ${listed}`,
      )
    }
  }
}

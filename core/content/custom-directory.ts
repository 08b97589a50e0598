/** Directories of embedders. Their rows are validated, because the rows of a database need not have their types. */
import { formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import type { Profile } from '../model.ts'
import type { Directory, ProfileQuery } from '../ports/directory.ts'
import { isCountryCode } from './iso-codes.ts'
import { createProfileIndex, positionOf } from './profile-index.ts'

/** Not valibot: validating each row of each page with it would be several times slower. */
type MemberRule = readonly [expected: string, isValid: (value: unknown) => boolean]
type MemberRules = Readonly<Record<string, MemberRule>>

const slug: MemberRule = ['a slug', (value) => typeof value === 'string' && SLUG_PATTERN.test(value)]
const text: MemberRule = ['text', (value) => typeof value === 'string' && value !== '']
const integer: MemberRule = ['an integer', Number.isInteger]
/** In the years 0–9999, as RFC 3339 writes them. */
const instant: MemberRule = [
  'whole milliseconds since the epoch',
  (value) =>
    Number.isInteger(value) && Number(value) >= -62_167_219_200_000 && Number(value) <= 253_402_300_799_999,
]
const listOf = ([expected, isValid]: MemberRule): MemberRule => [
  `a list, each item ${expected}`,
  (value) => Array.isArray(value) && value.every(isValid),
]
const object = (members: MemberRules): MemberRule => [
  `an object with ${Object.keys(members).join(' and ')}`,
  (value) => isObject(value) && Object.entries(members).every(([name, [, isValid]]) => isValid(value[name])),
]
/** Databases return `null` for an absent value. */
const optional = ([expected, isValid]: MemberRule): MemberRule => [
  `${expected} or undefined`,
  (value) => value === undefined || value === null || isValid(value),
]

const cardRules: MemberRules = {
  slug,
  name: text,
  headline: text,
  country: [
    'an ISO 3166-1 alpha-2 code or XK, in upper case',
    (value) => typeof value === 'string' && isCountryCode(value),
  ],
  industry: object({ slug, name: text }),
  logoUrl: optional(text),
  publishedAt: instant,
  updatedAt: instant,
}
const profileRules: MemberRules = {
  ...cardRules,
  description: optional(text),
  websiteUrl: optional(text),
  city: optional(text),
  foundedYear: optional(integer),
  employees: optional(object({ min: optional(integer), max: optional(integer) })),
  tags: listOf(text),
  contact: optional(object({ email: optional(text), phone: optional(text) })),
  links: listOf(object({ rel: text, url: text })),
}
const industryRules: MemberRules = { slug, name: text, parentSlug: optional(slug) }

/** @throws {Error} for the first invalid member; the message names it and the slug of its row. */
function validateRows(rows: readonly unknown[], kind: string, rules: MemberRules): void {
  if (!Array.isArray(rows)) {
    throw new Error(`directory: ${kind} rows must be a list, not ${formatValue(rows)}`)
  }
  for (const row of rows) {
    const members = isObject(row) ? row : {}
    for (const [name, [expected, isValid]] of Object.entries(rules)) {
      if (isValid(members[name])) continue
      const found = formatValue(members[name])
      throw new Error(
        `directory: ${kind} ${formatValue(members['slug'])}: ${name} must be ${expected}, not ${found}`,
      )
    }
  }
}

/**
 * The same directory, which throws for an invalid row.
 *
 * @param report Called with the error message unless it is the same as the last one.
 */
export function validatedDirectory(
  directory: Directory,
  report: (message: string) => void = () => {},
): Required<Directory> {
  let lastReported = ''
  const check = <T>(result: MaybePromise<T>, validate: (result: T) => void): MaybePromise<T> =>
    andThen(result, (found) => {
      try {
        validate(found)
        return found
      } catch (error) {
        const { message } = error as Error
        if (message !== lastReported) report(lastReported = message)
        throw error
      }
    })
  return {
    listProfiles: (...query) =>
      check(directory.listProfiles(...query), (rows) => validateRows(rows, 'profile', cardRules)),
    findProfile(...query) {
      const found = check(
        directory.findProfile(...query),
        (row) => row && validateRows([row], 'profile', profileRules),
      )
      // Some drivers return null for no row.
      return andThen(found, (row) => row ?? undefined)
    },
    listIndustries: () =>
      check(directory.listIndustries(), (rows) => validateRows(rows, 'industry', industryRules)),
    countProfiles: (...query) =>
      check(directory.countProfiles(...query), (counts) => {
        if (counts instanceof Map) return
        throw new Error(`directory: countProfiles must return a Map, not ${formatValue(counts)}`)
      }),
    nextProfileChangeAt: (...query) => directory.nextProfileChangeAt(...query),
    directoryRevision: () => directory.directoryRevision?.() ?? '',
  }
}

/** A public profile; only the members that every card needs are required. */
export type DirectoryRow =
  & Pick<Profile, 'slug' | 'name' | 'headline' | 'country' | 'industry' | 'publishedAt'>
  & Partial<Profile>

/**
 * A directory over a list in memory, visible to every partner. Its industries are those of the rows.
 *
 * @throws {Error} for an invalid row; the message names its slug and the member.
 * @example
 * ```ts
 * const api = createPartnerApi({ store, directory: directoryOf(rows) })
 * ```
 */
export function directoryOf(rows: readonly DirectoryRow[]): Directory {
  const profiles = rows.map((row) => ({ ...optionalDefaults, updatedAt: row.publishedAt, ...row }))
  validateRows(profiles, 'profile', profileRules)
  const index = createProfileIndex(profiles.map((card) => ({ ...card, card, visibleTo: undefined })))
  return {
    ...index,
    findProfile: (_partner, slug, now) =>
      profiles.find((profile) => profile.slug === slug && profile.publishedAt <= now),
    listIndustries: () => [
      ...new Map(profiles.map(({ industry }) => [industry.slug, { ...industry, parentSlug: undefined }]))
        .values(),
    ],
    directoryRevision: () => 'unchanging',
  }
}

const optionalDefaults = {
  logoUrl: undefined,
  description: undefined,
  websiteUrl: undefined,
  city: undefined,
  foundedYear: undefined,
  employees: undefined,
  tags: [],
  contact: undefined,
  links: [],
}

/**
 * Checks your own directory, for your tests: its rows are valid, and its first 1,000 profiles are found, paged in both
 * orders and counted like those of {@linkcode directoryOf}.
 *
 * @param partner Slug of the partner to read for, default `acme`.
 * @throws {Error} for the first error; the message names the slug and the member.
 */
export async function checkDirectory(directory: Directory, partner = 'acme'): Promise<void> {
  const now = Date.now()
  const checked = validatedDirectory(directory)
  const expectEqual = (subject: string, found: readonly unknown[], expected: readonly unknown[]): void => {
    if (String(found) === String(expected)) return
    throw new Error(
      `directory: ${subject} must be ${expected.join(', ')}, not ${found.join(', ') || 'nothing'}`,
    )
  }
  const slugs = async (source: Directory, order: Pick<ProfileQuery, 'sort' | 'after' | 'limit'>) => {
    const query = { words: [], countries: [], industries: [], ...order }
    return (await source.listProfiles(partner, query, now)).map(({ slug }) => slug)
  }
  const profiles: Profile[] = []
  for (const slug of await slugs(checked, { sort: 'name', after: undefined, limit: 1000 })) {
    const profile = await checked.findProfile(partner, slug, now)
    expectEqual(`findProfile of ${slug}`, [profile?.slug], [slug])
    profiles.push(profile!)
  }
  const expected = directoryOf(profiles)
  const known = (await checked.listIndustries()).map(({ slug }) => slug)
  for (const profile of profiles) {
    const { slug, industry, publishedAt } = profile
    if (!known.includes(industry.slug)) {
      throw new Error(`directory: listIndustries lacks ${industry.slug}, the industry of ${slug}`)
    }
    if (publishedAt > now) throw new Error(`directory: profile ${slug} is listed before it is published`)
    for (const sort of ['name', '-published_at'] as const) {
      const query = { sort, after: positionOf(profile, sort), limit: 3 }
      const found = await slugs(checked, query)
      expectEqual(`the page after ${slug} by ${sort}`, found, await slugs(expected, query))
    }
  }
  for (const by of ['country', 'industry'] as const) {
    const [found, expectedCounts] = await Promise.all(
      [checked, expected].map((source) => source.countProfiles(partner, by, now)),
    )
    expectEqual(
      `countProfiles by ${by}`,
      [...found!].map(String).sort(),
      [...expectedCounts!].map(String).sort(),
    )
  }
}

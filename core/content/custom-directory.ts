/** Directories of an embedder's own: checked where they answer, because types do not bind the rows of a database. */
import { formatValue } from '../http/redact.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import { compareCodePoints, fold, foldWords, SLUG_PATTERN } from '../lib/text.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { Directory, ProfilePosition, ProfileQuery, ProfileSort } from '../ports/directory.ts'
import { isRecord } from './fields.ts'
import { isCountryCode } from './iso-codes.ts'

type MemberRule = readonly [expected: string, holds: (value: unknown) => boolean]
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
const listOf = ([expected, holds]: MemberRule): MemberRule => [
  `a list, each item ${expected}`,
  (value) => Array.isArray(value) && value.every(holds),
]
const object = (members: MemberRules): MemberRule => [
  `an object with ${Object.keys(members).join(' and ')}`,
  (value) => isRecord(value) && Object.entries(members).every(([name, [, holds]]) => holds(value[name])),
]
/** Databases say `null` for a text or number that is absent. */
const optional = ([expected, holds]: MemberRule): MemberRule => [
  `${expected} or undefined`,
  (value) => value === undefined || value === null || holds(value),
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

/** @throws {Error} for the first member that is wrong; the message names it and the slug of its row. */
function validateRows(rows: readonly unknown[], kind: string, rules: MemberRules): void {
  if (!Array.isArray(rows)) {
    throw new Error(`directory: ${kind} rows must be a list, not ${formatValue(rows)}`)
  }
  for (const row of rows) {
    const members = isRecord(row) ? row : {}
    for (const [name, [expected, holds]] of Object.entries(rules)) {
      if (holds(members[name])) continue
      const found = formatValue(members[name])
      throw new Error(
        `directory: ${kind} ${formatValue(members['slug'])}: ${name} must be ${expected}, not ${found}`,
      )
    }
  }
}

/**
 * The same directory, which throws for a row that could not be shown.
 *
 * @param report Gets what is wrong, once until something else is.
 */
export function validatedDirectory(
  directory: Directory,
  report: (fault: string) => void = () => {},
): Required<Directory> {
  let lastReported = ''
  const check = <T>(answer: MaybePromise<T>, validate: (answer: T) => void): MaybePromise<T> =>
    andThen(answer, (found) => {
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
    listProfiles: (...question) =>
      check(directory.listProfiles(...question), (rows) => validateRows(rows, 'profile', cardRules)),
    findProfile: (...question) =>
      // A driver may say null for no row.
      andThen(
        check(
          directory.findProfile(...question),
          (row) => row && validateRows([row], 'profile', profileRules),
        ),
        (row) => row ?? undefined,
      ),
    listIndustries: () =>
      check(directory.listIndustries(), (rows) => validateRows(rows, 'industry', industryRules)),
    countProfiles: (...question) =>
      check(directory.countProfiles(...question), (counts) => {
        if (counts instanceof Map) return
        throw new Error(`directory: countProfiles must return a Map, not ${formatValue(counts)}`)
      }),
    nextProfileChangeAt: (...question) => directory.nextProfileChangeAt(...question),
    directoryRevision: () => directory.directoryRevision?.() ?? '',
  }
}

/** A public profile, of which all but the members of every card may be left out. */
export type DirectoryRow =
  & Pick<Profile, 'slug' | 'name' | 'headline' | 'country' | 'industry' | 'publishedAt'>
  & Partial<Profile>

const positionOf = ({ name, publishedAt, slug }: ProfileCard, sort: ProfileSort): ProfilePosition => ({
  key: sort === 'name' ? fold(name) : publishedAt,
  slug,
})

function comparePositions(a: ProfilePosition, b: ProfilePosition): number {
  const byKey = typeof a.key === 'number' ? Number(b.key) - a.key : compareCodePoints(a.key, String(b.key))
  return byKey || compareCodePoints(a.slug, b.slug)
}

/**
 * A directory of a list that fits in memory, visible to every partner. Its industries are those of the rows.
 *
 * @throws {Error} for a row that is not well-formed; the message names its slug and the member.
 * @example
 * ```ts
 * const api = createPartnerApi({ store, directory: directoryOf(rows) })
 * ```
 */
export function directoryOf(rows: readonly DirectoryRow[]): Directory {
  const profiles = rows.map((row) => ({ ...optionalDefaults, updatedAt: row.publishedAt, ...row }))
  validateRows(profiles, 'profile', profileRules)
  const words = new Map(profiles.map((profile) => {
    const { name, headline, description, tags } = profile
    return [profile, [name, headline, description ?? '', ...tags].flatMap(foldWords)]
  }))
  const ordered = (sort: ProfileSort) =>
    profiles.toSorted((a, b) => comparePositions(positionOf(a, sort), positionOf(b, sort)))
  const orders = { name: ordered('name'), '-published_at': ordered('-published_at') }
  return {
    listProfiles: (_partner, query, now) =>
      orders[query.sort].filter((profile) =>
        profile.publishedAt <= now &&
        (query.countries.length === 0 || query.countries.includes(profile.country)) &&
        (query.industries.length === 0 || query.industries.includes(profile.industry.slug)) &&
        query.words.every((word) => words.get(profile)!.some((one) => one.startsWith(word))) &&
        (query.after === undefined || comparePositions(query.after, positionOf(profile, query.sort)) < 0)
      ).slice(0, query.limit),
    findProfile: (_partner, slug, now) =>
      profiles.find((profile) => profile.slug === slug && profile.publishedAt <= now),
    countProfiles(_partner, by, now) {
      const shown = profiles.filter(({ publishedAt }) => publishedAt <= now)
      const groups = Map.groupBy(shown, ({ country, industry }) => by === 'country' ? country : industry.slug)
      return new Map([...groups].map(([key, { length }]) => [key, length]))
    },
    listIndustries: () => [
      ...new Map(profiles.map(({ industry }) => [industry.slug, { ...industry, parentSlug: undefined }]))
        .values(),
    ],
    nextProfileChangeAt: (_partner, now) =>
      orders['-published_at'].findLast(({ publishedAt }) => publishedAt > now)?.publishedAt,
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
 * Checks a directory of your own, for your tests: that its rows are well-formed, and that its first 1,000 profiles are
 * found, paged through in both orders and counted as in {@linkcode directoryOf} of them.
 *
 * @param partner Slug of the partner that it is asked for, default `acme`.
 * @throws {Error} for the first thing that is wrong; the message names the slug and the member.
 */
export async function checkDirectory(directory: Directory, partner = 'acme'): Promise<void> {
  const now = Date.now()
  const checked = validatedDirectory(directory)
  const expectEqual = (what: string, found: readonly unknown[], expected: readonly unknown[]): void => {
    if (String(found) === String(expected)) return
    throw new Error(`directory: ${what} must be ${expected.join(', ')}, not ${found.join(', ') || 'nothing'}`)
  }
  const slugs = async (from: Directory, more: Pick<ProfileQuery, 'sort' | 'after' | 'limit'>) => {
    const query = { words: [], countries: [], industries: [], ...more }
    return (await from.listProfiles(partner, query, now)).map(({ slug }) => slug)
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
      expectEqual(`what follows ${slug} by ${sort}`, found, await slugs(expected, query))
    }
  }
  for (const by of ['country', 'industry'] as const) {
    const [found, wanted] = await Promise.all(
      [checked, expected].map((one) => one.countProfiles(partner, by, now)),
    )
    expectEqual(`countProfiles by ${by}`, [...found!].map(String).sort(), [...wanted!].map(String).sort())
  }
}

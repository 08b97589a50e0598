/** Directories of embedders. What they return is converted and checked here, because drivers do not know these types. */
import { formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { andThen, type MaybePromise, toPromise } from '../lib/promise.ts'
import { pagesOf } from '../ports/store.ts'
import type { Profile, ProfileCard } from '../model.ts'
import type { Directory, ProfileQuery } from '../ports/directory.ts'
import { createProfileIndex, positionOf } from './profile-index.ts'
import {
  instant,
  integer,
  object,
  optional,
  readCard,
  type Reader,
  readIndustry,
  readProfile,
  revision,
  text,
} from './row-readers.ts'

/** Receives the reason for which a row is left out; may throw instead. */
type LeaveOut = (reason: string) => void
type ResultReader<T> = (found: unknown, name: string, leaveOut: LeaveOut) => T

const failing: LeaveOut = (reason) => {
  throw new Error(reason)
}

const rowsOf = <T>(kind: string, read: Reader<T>): ResultReader<T[]> => (found, name, leaveOut) => {
  if (!Array.isArray(found)) throw new Error(`${name} must be a list, not ${formatValue(found)}`)
  const rows: T[] = []
  for (const row of found) {
    try {
      rows.push(read(row, 'the row'))
    } catch (error) {
      leaveOut(`${kind} ${formatValue(isObject(row) ? row['slug'] : row)}: ${(error as Error).message}`)
    }
  }
  return rows
}

const readCards = rowsOf('profile', readCard)
const readProfiles = rowsOf('profile', readProfile)
const readCount = object({ slug: text, count: integer('an integer, 0 or more', 0) })

/** What to do about invalid results of a directory. */
export interface DirectoryChecks {
  /** Whether an invalid row fails the call instead of being left out. */
  readonly failsOnInvalidRow: boolean
  /** Called for each row that is left out. */
  onLeftOut?(): void
  /** Called once for each error message. */
  report?(message: string): void
}

const maxReported = 1_000

/** The same directory with valid results: it leaves invalid rows out, and throws for any other invalid result. */
export function checkedDirectory(
  directory: Directory,
  { failsOnInvalidRow, onLeftOut, report }: DirectoryChecks,
): Required<Directory> {
  const reported = new Set<string>()
  function reportOnce(message: string): void {
    if (reported.has(message) || reported.size >= maxReported) return
    reported.add(message)
    report?.(message)
  }

  function call<T>(
    method: keyof Directory,
    args: readonly unknown[],
    read: ResultReader<T>,
  ): MaybePromise<T> {
    const leaveOut: LeaveOut = (reason) => {
      if (failsOnInvalidRow) failing(reason)
      onLeftOut?.()
      reportOnce(`directory.${method}: ${reason}`)
    }
    const methods = directory as unknown as Record<string, (...args: readonly unknown[]) => unknown>
    return andThen(toPromise(methods[method]!(...args)), (found) => {
      try {
        return read(found, 'the result', leaveOut)
      } catch (error) {
        const message = `directory.${method}: ${(error as Error).message}`
        reportOnce(message)
        throw new Error(message)
      }
    })
  }

  /** Asks for more rows when some are left out: a short page is taken for the last one. */
  function readPage(
    partner: string,
    query: ProfileQuery,
    now: number,
    limit: number,
  ): MaybePromise<readonly ProfileCard[]> {
    let length = 0
    const page = call('listProfiles', [partner, { ...query, limit }, now], (found, name, leaveOut) => {
      const rows = readCards(found, name, leaveOut)
      length = (found as readonly unknown[]).length
      if (length > limit) leaveOut(`${name} must have at most ${limit} rows, not ${length}`)
      return rows.slice(0, query.limit)
    })
    return andThen(
      page,
      (rows) =>
        length < limit || rows.length === query.limit ? rows : readPage(partner, query, now, 2 * limit),
    )
  }

  return {
    listProfiles: (partner, query, now) => readPage(partner, query, now, query.limit),
    findProfile: (...args) =>
      call(
        'findProfile',
        args,
        (found, name, leaveOut) => readProfiles(found == null ? [] : [found], name, leaveOut)[0],
      ),
    listIndustries: () => call('listIndustries', [], rowsOf('industry', readIndustry)),
    countProfiles: (...args) =>
      call('countProfiles', args, (found, name, leaveOut) => {
        if (!(found instanceof Map)) throw new Error(`${name} must be a Map, not ${formatValue(found)}`)
        const rows = Array.from(found, ([slug, count]) => ({ slug, count }))
        return new Map(
          rowsOf(args[1], readCount)(rows, name, leaveOut).map(({ slug, count }) => [slug, count]),
        )
      }),
    nextProfileChangeAt: (...args) => call('nextProfileChangeAt', args, optional(instant)),
    directoryRevision: () =>
      directory.directoryRevision == null ? '' : call('directoryRevision', [], revision),
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
  const dated = rows.map((row) => ({ ...row, updatedAt: row.updatedAt ?? row.publishedAt }))
  const profiles = readProfiles(dated, 'directoryOf: the rows', (reason) => failing(`directoryOf: ${reason}`))
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

/**
 * Checks your own directory, for your tests: its rows are valid and counted like those of {@linkcode directoryOf}, and its first
 * 1,000 profiles are found and paged like them in both orders.
 *
 * @param partner Slug of the partner to read for, default `acme`.
 * @throws {Error} for the first error; the message names the slug and the member.
 */
export async function checkDirectory(directory: Directory, partner = 'acme'): Promise<void> {
  const now = Date.now()
  const checked = checkedDirectory(directory, { failsOnInvalidRow: true })
  const expectEqual = (subject: string, found: readonly unknown[], expected: readonly unknown[]): void => {
    if (String(found) === String(expected)) return
    throw new Error(
      `directory: ${subject} must be ${expected.join(', ')}, not ${found.join(', ') || 'nothing'}`,
    )
  }
  const list = async (source: Directory, order: Pick<ProfileQuery, 'sort' | 'after' | 'limit'>) =>
    await source.listProfiles(partner, { words: [], countries: [], industries: [], ...order }, now)
  const cards = new Map<string, ProfileCard>()
  const pages = pagesOf<ProfileCard>((last, limit) =>
    list(checked, { sort: 'name', after: last && positionOf(last, 'name'), limit })
  )
  for await (const page of pages) {
    for (const card of page) {
      if (cards.has(card.slug)) throw new Error(`directory: ${card.slug} is listed twice by name`)
      cards.set(card.slug, card)
    }
  }
  await checked.nextProfileChangeAt(partner, now)
  await checked.directoryRevision()
  const expected = directoryOf([...cards.values()])
  const slugs = async (...query: Parameters<typeof list>) => (await list(...query)).map(({ slug }) => slug)
  const known = (await checked.listIndustries()).map(({ slug }) => slug)
  for (const profile of [...cards.values()].slice(0, 1000)) {
    const { slug, industry, publishedAt } = profile
    expectEqual(`findProfile of ${slug}`, [(await checked.findProfile(partner, slug, now))?.slug], [slug])
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

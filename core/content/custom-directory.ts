/**
 * Directories of embedders. What they return is converted and checked here, because drivers do not know these types.
 */
import * as v from 'valibot'
import { formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { assertKind } from '../lib/options.ts'
import { andThen, type MaybePromise, toPromise } from '../lib/promise.ts'
import type { Industry, Profile, ProfileCard } from '../model.ts'
import type { Directory, ProfileQuery } from '../ports/directory.ts'
import { pagesOf } from '../ports/store.ts'
import { cardFields, detailFields, industryFields } from './directory-fields.ts'
import { formatPath, fromRow, mustBe, object, rowPath, type Schema } from './fields.ts'
import { createProfileIndex, positionOf } from './profile-index.ts'
import { INSTANT_NAME, ROW, toInstant, toInteger } from './row-scalars.ts'

function reject(name: string, expected: string, value: unknown): never {
  throw new Error(`${name} ${mustBe(expected, value)}`)
}

function readText(value: unknown, name: string): string {
  return typeof value === 'string' && value !== '' ? value : reject(name, 'text', value)
}

/** Receives the reason for which a row is left out; may throw instead. */
type LeaveOut = (reason: string) => void
type ResultReader<T> = (found: unknown, leaveOut: LeaveOut) => T

const failing: LeaveOut = (reason) => {
  throw new Error(reason)
}

const rowsOf = <T>(kind: string, read: (row: unknown) => T): ResultReader<T[]> => (found, leaveOut) => {
  if (!Array.isArray(found)) return reject(result, 'a list', found)
  const rows: T[] = []
  for (const row of found) {
    try {
      rows.push(read(row))
    } catch (error) {
      leaveOut(`${kind} ${formatValue(isObject(row) ? row['slug'] : row)}: ${(error as Error).message}`)
    }
  }
  return rows
}

const recordsOf = <T>(kind: string, schema: Schema<T>): ResultReader<T[]> =>
  rowsOf(kind, (row) => {
    const { success, output, issues } = v.safeParse(schema, fromRow(schema, row), { abortEarly: true })
    if (success) return output
    const [issue] = issues
    throw new Error(`${formatPath(rowPath(issue)) || 'the row'} ${issue.message}`)
  })

/** What messages call the result of a method. */
const result = 'the result'
const card = cardFields(ROW)
const readCards = recordsOf<ProfileCard>('profile', object(card))
const readProfiles = recordsOf<Profile>('profile', object({ ...card, ...detailFields(ROW) }))
const readIndustries = recordsOf<Industry>('industry', object(industryFields(ROW)))

/** The number of a version is a revision, too. */
function readRevision(value: unknown): string {
  const isRevision = typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value)
  return isRevision ? String(value) : reject(result, 'text or a number', value)
}

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

type CallDirectory = <T>(
  method: keyof Directory,
  call: () => unknown,
  read: ResultReader<T>,
) => MaybePromise<T>

/** Calls methods of a directory, and reads what they return. */
function createCaller(checks: DirectoryChecks): CallDirectory {
  const reported = new Set<string>()
  function reportOnce(message: string): void {
    if (reported.has(message) || reported.size >= maxReported) return
    reported.add(message)
    checks.report?.(message)
  }

  return (method, call, read) => {
    const leaveOut: LeaveOut = (reason) => {
      if (checks.failsOnInvalidRow) failing(reason)
      checks.onLeftOut?.()
      reportOnce(`directory.${method}: ${reason}`)
    }
    return andThen(toPromise(call()), (found) => {
      try {
        return read(found, leaveOut)
      } catch (error) {
        const message = `directory.${method}: ${(error as Error).message}`
        reportOnce(message)
        throw new Error(message)
      }
    })
  }
}

/** A directory with valid results only: it leaves invalid rows out, and throws for any other invalid result. */
export function checkedDirectory(directory: Directory, checks: DirectoryChecks): Required<Directory> {
  const call = createCaller(checks)

  /** Asks for more rows when some are left out: a short page is taken for the last one. */
  function readPage(
    partner: string,
    query: ProfileQuery,
    now: number,
    limit: number,
  ): MaybePromise<readonly ProfileCard[]> {
    let length = 0
    const list = () => directory.listProfiles(partner, { ...query, limit }, now)
    const page = call('listProfiles', list, (found, leaveOut) => {
      const rows = readCards(found, leaveOut)
      length = (found as readonly unknown[]).length
      if (length > limit) leaveOut(`${result} must have at most ${limit} rows, not ${length}`)
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
    findProfile: (partner, slug, now) =>
      call('findProfile', () => directory.findProfile(partner, slug, now), (found, leaveOut) => {
        const [profile] = readProfiles(found == null ? [] : [found], leaveOut)
        if (profile === undefined || profile.slug === slug) return profile
        leaveOut(
          `profile ${formatValue(profile.slug)}: its slug is not ${formatValue(slug)}, which was asked for`,
        )
        return undefined
      }),
    listIndustries: () => call('listIndustries', () => directory.listIndustries(), readIndustries),
    countProfiles: (...args) =>
      call('countProfiles', () => directory.countProfiles(...args), (found, leaveOut) => {
        if (!(found instanceof Map)) return reject(result, 'a Map', found)
        const rows = Array.from(found, ([slug, count]) => ({ slug, count }))
        const readCounts = rowsOf(args[1], (row) => {
          const { slug, count } = row as typeof rows[number]
          const number = toInteger(count, 0) ?? reject('count', 'an integer, 0 or more', count)
          return [readText(slug, 'slug'), number] as const
        })
        return new Map(readCounts(rows, leaveOut))
      }),
    nextProfileChangeAt: (...args) =>
      call(
        'nextProfileChangeAt',
        () => directory.nextProfileChangeAt(...args),
        (found) => found == null ? undefined : toInstant(found) ?? reject(result, INSTANT_NAME, found),
      ),
    directoryRevision: () =>
      directory.directoryRevision == null
        ? ''
        : call('directoryRevision', () => directory.directoryRevision?.(), readRevision),
  }
}

/** A public profile; only the members that every card needs are required. */
export type DirectoryRow =
  & Pick<Profile, 'slug' | 'name' | 'headline' | 'country' | 'industry' | 'publishedAt'>
  & Partial<Profile>

/**
 * A directory over a list in memory, visible to every partner. Its industries are those of the rows.
 *
 * @throws {Error} for an invalid row, and for a slug that two rows have; the message names its slug and the member.
 * @example
 * ```ts
 * const api = createPartnerApi({ store, directory: directoryOf(rows) })
 * ```
 */
export function directoryOf(rows: readonly DirectoryRow[]): Directory {
  assertKind('directoryOf: the rows', rows, 'a list')
  const dated = rows.map((row) => ({ ...row, updatedAt: row?.updatedAt ?? row?.publishedAt }))
  const profiles = readProfiles(dated, (reason) => failing(`directoryOf: ${reason}`))
  const slugs = new Set<string>()
  for (const { slug } of profiles) {
    if (slugs.has(slug)) failing(`directoryOf: profile ${slug}: another row has the same slug`)
    slugs.add(slug)
  }
  const index = createProfileIndex(profiles)
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
 * Checks your own directory, for your tests: its rows are valid and counted like those of {@linkcode directoryOf},
 * and its first 1,000 profiles are found and paged like them in both orders.
 *
 * @param partner Slug of the partner to read for, default `acme`.
 * @throws {Error} for the first error; the message names the slug and the member.
 */
export async function checkDirectory(directory: Directory, partner = 'acme'): Promise<void> {
  for (
    const method of [
      'listProfiles',
      'findProfile',
      'listIndustries',
      'countProfiles',
      'nextProfileChangeAt',
    ] as const
  ) {
    if (typeof directory?.[method] !== 'function') {
      throw new TypeError(`directory: there is no method ${method}.`)
    }
  }
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

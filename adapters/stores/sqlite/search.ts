import type { MaybePromise } from '../../../core/lib/promise.ts'
import { SLUG_PATTERN } from '../../../core/lib/text.ts'
import type { ProfileQuery, ProfileSort } from '../../../core/ports/directory.ts'
import { matchesWords } from '../content-text.ts'
import { StoreError } from '../store-error.ts'
import { CARD_COLUMNS, type CardRow } from '../tables.ts'
import type { Database, Statement } from './database.ts'
import { windowEnd, windowTerm } from './ranks.ts'

/** Reads the first profiles of a query. A promise only where that takes more than one turn. */
export type ProfileSearch = (partner: string, query: ProfileQuery, now: number) => MaybePromise<CardRow[]>

/** The tables of each order: `rank_ORDER` and `search_ORDER`. */
export const ORDERS: Readonly<Record<ProfileSort, 'name' | 'newest'>> = {
  name: 'name',
  '-published_at': 'newest',
}

/** A search gives way to other requests after this, and for as long as it took. */
const sliceMs = 4
/** The time of all turns of a search together. Its client is told to come again later. */
const maxSearchMs = 400
/** Searches of one partner, and of all together, that wait while one of them is in its turns. */
const maxWaiting = { partner: 4, all: 32 }

/** Longest prefix that is indexed, in code points; longer words are looked up in `long_word`. */
const maxPrefixLength = 5
/** Words that one prefix may stand for. With more of them, matches of its first letters are checked one by one. */
const maxExpansions = 64
/** Pairs of country and industry that are cheaper to unite than two filters are to intersect. */
const maxPairs = 40

/** Profiles of a window at first: they cost less than a millisecond, whatever a query is. */
const firstWindow = 16_384

/** The parts of a query that the full-text index answers. */
interface MatchExpression {
  /** All of these have to match. Each alone is found from any label in one step. */
  readonly parts: readonly string[]
  /** Words that matches still have to be checked for. */
  readonly unverified: readonly string[]
}

type FoundRow = [label: number, search: string, ...CardRow]

/**
 * Searches and lists along an order of labels. The index gives matches in that order from any position, so that the
 * work is that of the page. What no index can bound (words that are frequent and never meet, profiles that are not due
 * yet) is read window by window, and in turns when it takes long; one such search runs at a time.
 */
export function createProfileSearch(database: Database, runTimeSliced: TimeSlicer): ProfileSearch {
  const statements = { name: orderStatements(database, 'name'), newest: orderStatements(database, 'newest') }
  const selectExpansions = database.statement<[word: string]>(`
    SELECT word FROM long_word WHERE word >= ?1 AND word < ?1 || char(1114111) LIMIT ${maxExpansions + 1}`)
  const selectRevision = database.statement<[number]>('SELECT content_changes FROM store')
  const selectMaxId = database.statement<[number | null]>('SELECT max(id) FROM profile')

  /** @returns `undefined` when nothing can match. */
  function toMatchExpression(partner: string, query: ProfileQuery): MatchExpression | undefined {
    const unverified: string[] = []
    const parts = [anyOf(audienceTerms(partner))]
    for (const word of query.words) {
      const letters = [...word]
      const expanded = letters.length <= maxPrefixLength
        ? []
        : selectExpansions.all(word).map(([found]) => found)
      if (letters.length <= maxPrefixLength) parts.unshift(`${quote(word)} *`)
      else if (expanded.length === 0) return undefined
      else if (expanded.length <= maxExpansions) parts.unshift(anyOf(expanded))
      else {
        parts.unshift(`${quote(letters.slice(0, maxPrefixLength).join(''))} *`)
        unverified.push(word)
      }
    }
    const filters = filterParts(query)
    return filters && { parts: [...parts, ...filters], unverified }
  }

  function* search(partner: string, query: ProfileQuery, now: number): Generator<void, CardRow[]> {
    const { read, first, next } = statements[ORDERS[query.sort]]
    for (;;) {
      const before = selectRevision.get()![0]
      const expression = toMatchExpression(partner, query)
      const start = first.get(...startPosition(query, now))?.[0]
      if (expression === undefined || start === undefined) return []
      const page: CardRow[] = []
      let label = start
      let level = Math.max(0, Math.ceil(Math.log2((selectMaxId.get()![0] ?? 0) / firstWindow) / 4))
      // Labels are moved now and then: after another change they mean nothing.
      while (page.length < query.limit && label !== Infinity && selectRevision.get()![0] === before) {
        const startedAt = performance.now()
        // Where the rarest part has nothing there is nothing to look for.
        for (const part of expression.parts) label = Math.max(label, next.get(part, label)?.[0] ?? Infinity)
        if (label === Infinity) break
        const wanted = query.limit - page.length
        const window = level === 0 ? [] : [`${quote(windowTerm(label, level))} *`]
        const match = [...expression.parts, ...window].join(' AND ')
        const rows = read.all(match, label, now, wanted)
        for (const [, text, ...row] of rows) if (matchesWords(text, expression.unverified)) page.push(row)
        label = rows.length === wanted ? rows.at(-1)![0] + 1 : windowEnd(label, level)
        const elapsed = performance.now() - startedAt
        if (elapsed > sliceMs && level < 4) level++
        else if (elapsed < sliceMs / 8 && level > 1) level--
        yield
      }
      if (page.length === query.limit || label === Infinity) return page
    }
  }

  return (partner, query, now) => runTimeSliced(partner, search(partner, query, now), maxSearchMs)
}

/** Reads in steps: at once as far as a turn goes. The rest is read in turns of `longestMs` together, one read after the other. */
export type TimeSlicer = <T>(partner: string, steps: Iterator<void, T>, longestMs: number) => MaybePromise<T>

export function createTimeSlicer(database: Database): TimeSlicer {
  let last: Promise<unknown> = Promise.resolve()
  const waiting: string[] = []

  function runSlice<T>(steps: Iterator<void, T>): IteratorResult<void, T> {
    return database.snapshot(() => {
      const startedAt = performance.now()
      let step = steps.next()
      while (!step.done && performance.now() - startedAt < sliceMs) step = steps.next()
      return step
    })
  }

  async function finish<T>(steps: Iterator<void, T>, maxMs: number): Promise<T> {
    for (let spentMs = sliceMs, elapsedMs = sliceMs;; spentMs += elapsedMs) {
      if (spentMs > maxMs) throw searchAbandonedError('takes too long')
      await new Promise((resolve) => setTimeout(resolve, elapsedMs))
      const startedAt = performance.now()
      const step = runSlice(steps)
      if (step.done) return step.value
      elapsedMs = performance.now() - startedAt
    }
  }

  return (partner, steps, longestMs) => {
    const step = runSlice(steps)
    if (step.done) return step.value
    const ofPartner = waiting.filter((other) => other === partner).length
    if (ofPartner >= maxWaiting.partner || waiting.length >= maxWaiting.all) {
      throw searchAbandonedError('would wait too long')
    }
    waiting.push(partner)
    const result = last.then(() => finish(steps, longestMs))
      .finally(() => waiting.splice(waiting.indexOf(partner), 1))
    last = result.catch(() => undefined)
    return result
  }
}

function searchAbandonedError(what: string): StoreError {
  return new StoreError('unreachable', `A search of the store ${what}: it was given up.`)
}

interface OrderStatements {
  readonly read: Statement<FoundRow>
  readonly first: Statement<[label: number]>
  readonly next: Statement<[label: number]>
}

function orderStatements(database: Database, order: 'name' | 'newest'): OrderStatements {
  return {
    // A bare parameter as LIMIT has SQLite prepare the statement anew whenever it is bound, and FTS5 takes no bound of
    // rowids that is not typed as an integer.
    read: database.statement(`
      SELECT r.label, p.search, ${CARD_COLUMNS}
      FROM search_${order} s CROSS JOIN rank_${order} r ON r.label = s.rowid
      CROSS JOIN profile p ON p.id = r.profile CROSS JOIN industry i ON i.slug = p.industry
      WHERE s.search_${order} MATCH ?1 AND s.rowid >= CAST(?2 AS INTEGER) AND p.published_at <= ?3
      ORDER BY s.rowid LIMIT ?4 + 0`),
    first: database.statement(`
      SELECT label FROM rank_${order} WHERE (key, slug) > (?1, ?2) ORDER BY key, slug LIMIT 1`),
    next: database.statement(`
      SELECT rowid FROM search_${order}
      WHERE search_${order} MATCH ?1 AND rowid >= CAST(?2 AS INTEGER) ORDER BY rowid LIMIT 1`),
  }
}

/** The place after which a page starts: by recency never before what is due. */
function startPosition({ sort, after }: ProfileQuery, now: number): [key: string | number, slug: string] {
  if (sort === 'name') return after === undefined ? ['', ''] : [after.key, after.slug]
  return after === undefined || Number(after.key) > now ? [-now, ''] : [-after.key, after.slug]
}

/** The terms of the profiles that a partner sees. */
export function audienceTerms(partner: string): string[] {
  return SLUG_PATTERN.test(partner) ? ['~', `~${partner}`] : ['~']
}

function filterParts(query: ProfileQuery): string[] | undefined {
  const countries = query.countries.filter((code) => /^[A-Z]{2}$/.test(code)).map((code) => `=${code}`)
  const industries = query.industries.filter((slug) => SLUG_PATTERN.test(slug)).map((slug) => `@${slug}`)
  if (query.countries.length > 0 && countries.length === 0) return undefined
  if (query.industries.length > 0 && industries.length === 0) return undefined
  const filters = [countries, industries].filter((terms) => terms.length > 0)
  if (filters.length < 2 || countries.length * industries.length > maxPairs) return filters.map(anyOf)
  return [anyOf(countries.flatMap((country) => industries.map((industry) => country + industry)))]
}

/** FTS5: a row that has one of some terms. */
export function anyOf(terms: readonly string[]): string {
  return `(${terms.map(quote).join(' OR ')})`
}

/** A string in FTS5's quotes is one term and nothing else, whatever it is made of. */
function quote(term: string): string {
  return `"${term.replaceAll('"', '""')}"`
}

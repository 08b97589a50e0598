import { matchesWords } from '../../../core/content/profile-index.ts'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import { SLUG_PATTERN } from '../../../core/content/scalars.ts'
import type { ProfileQuery } from '../../../core/ports/directory.ts'
import { CARD_COLUMNS, type CardRow, startPosition } from '../sql/tables.ts'
import type { SqliteDatabase } from './database.ts'
import { windowEnd, windowTerm } from './ranks.ts'
import { SLICE_MS, type TimeSlicer } from './time-slicer.ts'

/** The slices of one search together. Beyond this, the client is asked to retry later. */
const maxSearchMs = 400

/** Longest indexed prefix, in code points. Longer words are looked up in `long_word`. */
const maxPrefixLength = 5
/** Words that a prefix may expand to. With more of them, the matches of its first letters are checked one by one. */
const maxExpansions = 64
/** Pairs of country and industry that cost less as one union than as an intersection of two filters. */
const maxPairs = 40

/** Profiles of the first window for one part: a query reads them in a few milliseconds, whatever its parts are. */
const firstWindow = 262_144
/** The most matches of a query. They are read in less than a millisecond. */
const maxMatches = 256

/** The next query of a search: up to `size` matches from a label to the end of its window of a level (`windowTerm`). */
interface SearchStep {
  readonly label: number
  /** 0: all labels. */
  readonly level: number
  readonly size: number
}

/** docs/ARCHITECTURE.md describes how searches work. */
export function createProfileSearch(database: SqliteDatabase, runTimeSliced: TimeSlicer) {
  const name = orderStatements(database, 'name')
  const newest = orderStatements(database, 'newest')
  const selectState = database.statement<[revision: number, maxId: number | null]>(
    'SELECT content_changes, (SELECT max(id) FROM profile) FROM store',
  )
  const toMatchExpression = createMatchExpressions(database)

  function* search(partner: string, query: ProfileQuery, now: number): Generator<void, CardRow[]> {
    const order = query.sort === 'name' ? name : newest
    const audience = audienceTerms(partner)
    for (;;) {
      const [revision, maxId] = selectState.get()!
      const expression = toMatchExpression(query)
      const start = order.first.get(...startPosition(query, now))?.[0]
      if (expression === undefined || start === undefined) return []
      const { parts, unverified } = expression
      const all = [...parts, anyOf(audience)]
      // The list of what a partner sees is the longest one: to read it takes longer than to check the first rows.
      let terms = parts.length === 0 ? all : parts
      let step = firstStep(start, query.limit, (maxId ?? 0) * all.length)
      const page: CardRow[] = []
      do {
        const startedAt = performance.now()
        const label = step.level === 0 ? step.label : order.skip(terms, step.label)
        if (label === Infinity) return page
        const rows = order.read.all(matchExpression(terms, { ...step, label }), label, step.size)
        for (const [, text, ...row] of rows) {
          const isVisible = row[4] <= now && audience.some((term) => text.includes(` ${term} `))
          if (isVisible && matchesWords(text, unverified) && page.push(row) === query.limit) return page
        }
        const end = rows.length === step.size ? rows.at(-1)![0] + 1 : windowEnd(label, step.level)
        if (end === Infinity) return page
        step = nextStep(step, end, performance.now() - startedAt)
        terms = all
        yield
        // A change of content may move labels: the search then starts again.
      } while (selectState.get()![0] === revision)
    }
  }

  return (partner: string, query: ProfileQuery, now: number): MaybePromise<CardRow[]> =>
    runTimeSliced(partner, search(partner, query, now), maxSearchMs)
}

/** @param work Profiles times parts: more than a window of them are read window by window from the start. */
function firstStep(label: number, size: number, work: number): SearchStep {
  return { label, size, level: Math.max(0, Math.ceil(Math.log2(work / firstWindow) / 4)) }
}

/** The window gets sixteen times smaller when one takes longer than a slice, and larger when it takes far less. */
function nextStep({ level, size }: SearchStep, label: number, elapsedMs: number): SearchStep {
  const next = { label, level, size: Math.min(2 * size, maxMatches) }
  if (elapsedMs > SLICE_MS && level < 4) next.level++
  else if (elapsedMs < SLICE_MS / 8 && level > 1) next.level--
  return next
}

function matchExpression(terms: readonly string[], { label, level }: SearchStep): string {
  const inWindow = level === 0 ? terms : [...terms, `${quote(windowTerm(label, level))} *`]
  return inWindow.join(' AND ')
}

function createMatchExpressions(database: SqliteDatabase) {
  const selectExpansions = database.statement<[word: string]>(`
    SELECT word FROM long_word WHERE word >= ?1 AND word < ?1 || char(1114111) LIMIT ${maxExpansions + 1}`)

  /** @returns Parts that all have to match, and words to check each match for; `undefined` when nothing can match. */
  return (query: ProfileQuery) => {
    const unverified: string[] = []
    const parts: string[] = []
    for (const word of query.words) {
      const letters = [...word]
      if (letters.length <= maxPrefixLength) {
        parts.unshift(`${quote(word)} *`)
        continue
      }
      const expansions = selectExpansions.all(word).map(([expansion]) => expansion)
      if (expansions.length === 0) return undefined
      if (expansions.length <= maxExpansions) parts.unshift(anyOf(expansions))
      else {
        parts.unshift(`${quote(letters.slice(0, maxPrefixLength).join(''))} *`)
        unverified.push(word)
      }
    }
    const filters = filterParts(query)
    return filters && { parts: [...parts, ...filters], unverified }
  }
}

function orderStatements(database: SqliteDatabase, order: 'name' | 'newest') {
  const next = database.statement<[label: number]>(`
    SELECT rowid FROM search_${order}
    WHERE search_${order} MATCH ?1 AND rowid >= CAST(?2 AS INTEGER) ORDER BY rowid LIMIT 1`)
  return {
    // A bare parameter as LIMIT makes SQLite prepare the statement again whenever it is bound. FTS5 uses a bound of
    // rowids only when its type is integer.
    read: database.statement<[label: number, search: string, ...CardRow]>(`
      SELECT r.label, p.search, ${CARD_COLUMNS}
      FROM (
        SELECT rowid FROM search_${order}
        WHERE search_${order} MATCH ?1 AND rowid >= CAST(?2 AS INTEGER) ORDER BY rowid LIMIT ?3 + 0
      ) s CROSS JOIN rank_${order} r ON r.label = s.rowid
      CROSS JOIN profile p ON p.id = r.profile CROSS JOIN industry i ON i.slug = p.industry
      ORDER BY s.rowid`),
    first: database.statement<[label: number]>(`
      SELECT label FROM rank_${order} WHERE (key, slug) > (?1, ?2) ORDER BY key, slug LIMIT 1`),
    /** Skips labels before the next match of every term. */
    skip: (terms: readonly string[], label: number) =>
      terms.reduce((from, term) => Math.max(from, next.get(term, from)?.[0] ?? Infinity), label),
  }
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

/** FTS5 syntax for rows with any of the terms. */
export function anyOf(terms: readonly string[]): string {
  return `(${terms.map(quote).join(' OR ')})`
}

/** Puts a term into FTS5's quotes, in which any text is one term. */
function quote(term: string): string {
  return `"${term.replaceAll('"', '""')}"`
}

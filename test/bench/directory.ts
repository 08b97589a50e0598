/** Directory queries, and the time their pages take. */
import type { PartnerApi } from '../../core/api.ts'
import { fold, foldWords } from '../../core/lib/text.ts'
import type { ProfilePosition, ProfileQuery, ProfileSort } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  COMMON_WORD,
  COUNTRIES,
  createRandom,
  DISJOINT_WORDS,
  HALF_WORD,
  INDUSTRIES,
  LATE_WORD,
  MIDDLING_WORD,
  PARTNER,
  pick,
  profiles,
  RARE_WORD,
} from './profiles.ts'
import { DIRECTORY_PATH, exchangeFor } from './tenant.ts'

/** A directory query. */
export interface Question {
  /** A word, or several with spaces between them. */
  readonly word?: string
  readonly countries?: readonly string[]
  readonly industries?: readonly string[]
  readonly sort?: ProfileSort
  /** The position of the first page, for stores only. */
  readonly from?: ProfilePosition
}

/** Creates queries of one kind. */
export type QuestionKind = (random: () => number) => Question

const countries = (random: () => number, length = 1) => Array.from({ length }, () => pick(COUNTRIES, random))
const industries = (random: () => number, length = 1) =>
  Array.from({ length }, () => pick(INDUSTRIES, random).slug)
const newest = { sort: '-published_at' } as const

/** The queries of both databases, by name. */
export const QUESTIONS: Readonly<Record<string, QuestionKind>> = {
  'no filter': () => ({}),
  'no filter, newest first': () => newest,
  country: (random) => ({ countries: countries(random) }),
  industry: (random) => ({ industries: industries(random) }),
  'country and industry': (random) => ({ countries: countries(random), industries: industries(random) }),
  '5 countries × 3 industries': (random) => ({
    countries: countries(random, 5),
    industries: industries(random, 3),
  }),
  'country, newest first': (random) => ({ ...newest, countries: countries(random) }),
  'a rare word': () => ({ word: RARE_WORD }),
  'a middling word': () => ({ word: MIDDLING_WORD }),
  'a common word': () => ({ word: COMMON_WORD }),
  'a common word in a country, newest first': (random) => ({
    ...newest,
    word: COMMON_WORD,
    countries: countries(random),
  }),
  'a word of 6,000 late profiles': () => ({ word: LATE_WORD }),
  'a word of 6,000 late profiles, newest first': () => ({ ...newest, word: LATE_WORD }),
  'a word of 6,000 late profiles in a country and industry': (random) => ({
    word: LATE_WORD,
    countries: countries(random),
    industries: industries(random),
  }),
  'a word of the last half': () => ({ word: HALF_WORD }),
  'a word of the last half in a country, newest first': (random) => ({
    ...newest,
    word: HALF_WORD,
    countries: countries(random),
  }),
  'two common words that never meet': () => ({ word: DISJOINT_WORDS }),
  'the first letters of a common word': () => ({ word: COMMON_WORD.slice(0, 6) }),
}

/** Additional queries: deep pages and two words. */
export const SERVER_QUESTIONS: Readonly<Record<string, QuestionKind>> = {
  ...QUESTIONS,
  'no filter, from anywhere': (random) => ({ from: nameBefore(random) }),
  'no filter, newest first, from anywhere': (random) => ({ ...newest, from: dateBefore(random) }),
  'country and industry, newest first': (random) => ({
    ...newest,
    countries: countries(random),
    industries: industries(random),
  }),
  '5 countries × 3 industries, newest first, from anywhere': (random) => ({
    ...newest,
    countries: countries(random, 5),
    industries: industries(random, 3),
    from: dateBefore(random),
  }),
  'a rare word and a common one': () => ({ word: `${COMMON_WORD} ${RARE_WORD}` }),
  'two common words': () => ({ word: `${COMMON_WORD} glass` }),
  'a middling word in a country': (random) => ({ word: MIDDLING_WORD, countries: countries(random) }),
  'a middling word, newest first, from anywhere': (random) => ({
    ...newest,
    word: MIDDLING_WORD,
    from: dateBefore(random),
  }),
  'a word of one profile in 170': (random) => ({ word: String(1850 + Math.floor(random() * 170)) }),
}

const day = 86_400_000

/** Somewhere in the order by name. */
function nameBefore(random: () => number): ProfilePosition {
  const [somebody] = profiles(1, Math.floor(random() * 1_000_000))
  return { key: fold(somebody!.name), slug: '' }
}

/** Somewhere in the order by date. */
function dateBefore(random: () => number): ProfilePosition {
  return { key: Date.UTC(2026, 0, 1) - Math.floor(random() * 1900 * day), slug: '' }
}

const pageSize = 20
/** The number of pages read per query. */
const pagesInARow = 10
const samples = 2000
const longestMs = 1500

/** Reads the next page. @returns Milliseconds, and whether there is another page. */
type Reader = () => Promise<{ milliseconds: number; more: boolean }>

/** Times many pages of one kind of query, after a warm-up. */
export async function timePages(kind: QuestionKind, open: (question: Question) => Reader): Promise<number[]> {
  const random = createRandom(11)
  const times: number[] = []
  const startedAt = performance.now()
  while (times.length < samples && performance.now() - startedAt < longestMs) {
    const readPage = open(kind(random))
    for (let page = 0; page < pagesInARow; page++) {
      const { milliseconds, more } = await readPage()
      times.push(milliseconds)
      if (!more) break
    }
  }
  return times.slice(Math.min(50, times.length >> 1))
}

/** Through the pipeline, without cached responses. */
export function pipelineReader(service: PartnerApi, key: string): (question: Question) => Reader {
  return ({ word, countries = [], industries = [], sort }) => {
    const query = new URLSearchParams({ partner: PARTNER, limit: String(pageSize) })
    if (word !== undefined) query.set('q', word)
    if (sort !== undefined) query.set('sort', sort)
    for (const country of countries) query.append('country', country)
    for (const industry of industries) query.append('industry', industry)
    return async () => {
      const exchange = exchangeFor(`${DIRECTORY_PATH}?${query}`, key)
      const startedAt = performance.now()
      const answer = service.handle(exchange)
      const { status, body } = answer instanceof Promise ? await answer : answer
      const milliseconds = performance.now() - startedAt
      if (status !== 200) throw new Error(`${exchange.target} was answered with ${status}.`)
      const { page } = JSON.parse(Buffer.from(body ?? '').toString())
      query.set('cursor', String(page.next_cursor))
      return { milliseconds, more: page.has_more }
    }
  }
}

/** The store alone. */
export function storeReader(store: Pick<Store, 'listProfiles'>): (question: Question) => Reader {
  return ({ word, countries = [], industries = [], sort = 'name', from }) => {
    const words = word === undefined ? [] : foldWords(word)
    let after = from
    return async () => {
      const query: ProfileQuery = { words, countries, industries, sort, after, limit: pageSize + 1 }
      const startedAt = performance.now()
      const found = store.listProfiles(PARTNER, query, Date.now())
      const profiles = found instanceof Promise ? await found : found
      const milliseconds = performance.now() - startedAt
      const last = profiles[pageSize - 1]
      after = last && { key: sort === 'name' ? fold(last.name) : last.publishedAt, slug: last.slug }
      return { milliseconds, more: profiles.length > pageSize }
    }
  }
}

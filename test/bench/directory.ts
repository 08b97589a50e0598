/** Questions to the directory, and how long their pages take. */
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

/** What is asked of the directory. */
export interface Question {
  /** A word, or several with spaces between them. */
  readonly word?: string
  readonly countries?: readonly string[]
  readonly industries?: readonly string[]
  readonly sort?: ProfileSort
  /** Where the first page begins: only a store can be asked for that. */
  readonly from?: ProfilePosition
}

/** A kind of question, each of other values. */
export interface QuestionKind {
  readonly name: string
  ask(random: () => number): Question
}

/** What both databases are asked. */
export const QUESTIONS: readonly QuestionKind[] = [
  { name: 'no filter', ask: () => ({}) },
  { name: 'no filter, newest first', ask: () => ({ sort: '-published_at' }) },
  { name: 'country', ask: (random) => ({ countries: [country(random)] }) },
  { name: 'industry', ask: (random) => ({ industries: [industry(random)] }) },
  {
    name: 'country and industry',
    ask: (random) => ({ countries: [country(random)], industries: [industry(random)] }),
  },
  {
    name: '5 countries × 3 industries',
    ask: (random) => ({
      countries: Array.from({ length: 5 }, () => country(random)),
      industries: Array.from({ length: 3 }, () => industry(random)),
    }),
  },
  {
    name: 'country, newest first',
    ask: (random) => ({ countries: [country(random)], sort: '-published_at' }),
  },
  { name: 'a rare word', ask: () => ({ word: RARE_WORD }) },
  { name: 'a middling word', ask: () => ({ word: MIDDLING_WORD }) },
  { name: 'a common word', ask: () => ({ word: COMMON_WORD }) },
  {
    name: 'a common word in a country, newest first',
    ask: (random) => ({ word: COMMON_WORD, countries: [country(random)], sort: '-published_at' }),
  },
  { name: 'a word of 6,000 late profiles', ask: () => ({ word: LATE_WORD }) },
  {
    name: 'a word of 6,000 late profiles, newest first',
    ask: () => ({ word: LATE_WORD, sort: '-published_at' }),
  },
  {
    name: 'a word of 6,000 late profiles in a country and industry',
    ask: (random) => ({ word: LATE_WORD, countries: [country(random)], industries: [industry(random)] }),
  },
  { name: 'a word of the last half', ask: () => ({ word: HALF_WORD }) },
  {
    name: 'a word of the last half in a country, newest first',
    ask: (random) => ({ word: HALF_WORD, countries: [country(random)], sort: '-published_at' }),
  },
  { name: 'two common words that never meet', ask: () => ({ word: DISJOINT_WORDS }) },
  { name: 'the first letters of a common word', ask: () => ({ word: COMMON_WORD.slice(0, 6) }) },
]

function country(random: () => number): string {
  return pick(COUNTRIES, random)
}

function industry(random: () => number): string {
  return pick(INDUSTRIES, random).slug
}

const day = 86_400_000

/** What SQLite is asked, and what a server may find harder: to begin far from the start, and to look for two words. */
export const SERVER_QUESTIONS: readonly QuestionKind[] = [
  ...QUESTIONS,
  { name: 'no filter, from anywhere', ask: (random) => ({ from: nameBefore(random) }) },
  {
    name: 'no filter, newest first, from anywhere',
    ask: (random) => ({ sort: '-published_at', from: dateBefore(random) }),
  },
  {
    name: 'country and industry, newest first',
    ask: (random) => ({
      countries: [pick(COUNTRIES, random)],
      industries: [pick(INDUSTRIES, random).slug],
      sort: '-published_at',
    }),
  },
  {
    name: '5 countries × 3 industries, newest first, from anywhere',
    ask: (random) => ({
      countries: Array.from({ length: 5 }, () => pick(COUNTRIES, random)),
      industries: Array.from({ length: 3 }, () => pick(INDUSTRIES, random).slug),
      sort: '-published_at',
      from: dateBefore(random),
    }),
  },
  { name: 'a rare word and a common one', ask: () => ({ word: `${COMMON_WORD} ${RARE_WORD}` }) },
  { name: 'two common words', ask: () => ({ word: `${COMMON_WORD} glass` }) },
  {
    name: 'a middling word in a country',
    ask: (random) => ({ word: MIDDLING_WORD, countries: [pick(COUNTRIES, random)] }),
  },
  {
    name: 'a middling word, newest first, from anywhere',
    ask: (random) => ({ word: MIDDLING_WORD, sort: '-published_at', from: dateBefore(random) }),
  },
  {
    name: 'a word of one profile in 170',
    ask: (random) => ({ word: String(1850 + Math.floor(random() * 170)) }),
  },
]

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
/** How far a reader pages before it asks something else. */
const pagesInARow = 10
const samples = 2000
const longestMs = 1500

/** Reads the next page. @returns Milliseconds, and whether there is another page. */
type Reader = () => Promise<{ milliseconds: number; more: boolean }>

/** Times many pages of one kind of question; the first ones are not counted. */
export async function timePages(kind: QuestionKind, open: (question: Question) => Reader): Promise<number[]> {
  const random = createRandom(11)
  const times: number[] = []
  const startedAt = performance.now()
  while (times.length < samples && performance.now() - startedAt < longestMs) {
    const readPage = open(kind.ask(random))
    for (let page = 0; page < pagesInARow; page++) {
      const { milliseconds, more } = await readPage()
      times.push(milliseconds)
      if (!more) break
    }
  }
  return times.slice(Math.min(50, times.length >> 1))
}

/** Through the whole pipeline, which keeps no replies here. */
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

import type { ProfilePosition, ProfileSort } from '../../../core/ports/directory.ts'
import {
  COMMON_WORD,
  COUNTRIES,
  DISJOINT_WORDS,
  HALF_WORD,
  INDUSTRIES,
  LATE_WORD,
  MIDDLING_WORD,
  RARE_WORD,
} from '../data/profiles.ts'
import { pick } from '../data/random.ts'

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

import { fold } from '../../../core/lib/text.ts'
import type { ProfilePosition } from '../../../core/ports/directory.ts'
import { COMMON_WORD, COUNTRIES, INDUSTRIES, MIDDLING_WORD, profiles, RARE_WORD } from '../data/profiles.ts'
import { pick } from '../data/random.ts'
import { type QuestionKind, QUESTIONS } from '../sqlite/questions.ts'

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

import { foldWords } from '../../core/content/fold.ts'
import type { ProfileRecord } from '../../core/content/records.ts'

/** What search looks at of a profile: each folded word once. */
export function searchWords(profile: ProfileRecord): Iterable<string> {
  const text = [profile.name, profile.headline, profile.description ?? '', ...profile.tags].join(' ')
  return new Set(foldWords(text))
}

/** The words with a space before each, so that `' uni'` finds a start. */
export function searchText(profile: ProfileRecord): string {
  return Array.from(searchWords(profile), (word) => ` ${word}`).join('')
}

/** Whether every one of `words`, folded, starts a word of a search text. */
export function matchesWords(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(` ${word}`))
}

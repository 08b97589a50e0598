import { readModules } from '../core/admin/apply.ts'
import type { Store } from '../core/ports/store.ts'
import { toCliError } from './errors.ts'
import { joinList } from './output/text.ts'

const maxSuggestions = 3
/** Of partners and keys, of which a store may have millions. */
const maxCompared = 10_000

/** Asks whether one of the known names that are most like this one is meant; empty when none is like it. */
export function suggest(name: string, known: readonly string[]): string {
  const folded = foldLookalikes(name)
  const distances = known.map((each) => editDistance(folded, foldLookalikes(each)))
  const least = Math.min(...distances)
  if (least > Math.min(2, name.length / 2)) return ''
  const similar = known.filter((_each, index) => distances[index] === least).slice(0, maxSuggestions)
  return `\n(Did you mean ${joinList(similar, 'or')}?)`
}

/** Adds suggestions from the store to the message about a partner, key, module or scope that does not exist. */
export async function suggestStored(error: unknown, store: Store): Promise<void> {
  const { message } = toCliError(error)
  const { code } = error as { readonly code?: string }
  const [, name] = /"([\w:-]{1,80})"/.exec(message) ?? []
  if (name !== undefined) (error as Error).message += suggest(name, await listKnown(store, code))
}

async function listKnown(store: Store, code: string | undefined): Promise<readonly string[]> {
  if (code === 'partner_not_found') {
    return (await store.listPartners(undefined, maxCompared)).map(({ slug }) => slug)
  }
  if (code === 'key_not_found') return (await store.listKeys({}, undefined, maxCompared)).map(({ id }) => id)
  const { names, scopes } = await readModules(store)
  return code === 'unknown_module' || code === 'module_not_found'
    ? names
    : code === 'unknown_scope'
    ? scopes
    : []
}

/** People confuse case, O with 0, and I with l and 1. */
function foldLookalikes(text: string): string {
  return text.toLowerCase().replaceAll('o', '0').replace(/[il]/g, '1')
}

/** @see https://en.wikipedia.org/wiki/Levenshtein_distance */
function editDistance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_each, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row[j] = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1)
    }
    last = row
  }
  return last[b.length]!
}

/** The keys that a key has replaced and is replaced by. */
import { keyState } from '../../core/keys/lifecycle.ts'
import { optionalRfc3339 } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Invocation } from '../command.ts'
import { shellQuote } from '../output/text.ts'
import { timeOf } from '../store/open.ts'

/** A key with those before and after it in its chain of rotations. */
export interface RelatedKey extends Key {
  readonly predecessor: Key | undefined
  readonly successor: Key | undefined
}

export async function withRelatives(
  store: Store,
  keys: readonly Key[],
): Promise<RelatedKey[]> {
  const known = new Map(keys.map((key) => [key.id, key]))
  const ids = new Set(keys.flatMap(({ predecessorId, successorId }) => [predecessorId, successorId]))
  await Promise.all([...ids].map(async (id) => {
    if (id === undefined || known.has(id)) return
    const found = await store.findKey(id)
    if (found !== undefined) known.set(id, found.key)
  }))
  return keys.map((key) => ({
    ...key,
    predecessor: known.get(key.predecessorId ?? ''),
    successor: known.get(key.successorId ?? ''),
  }))
}

export function relativesJson({ predecessor, successor }: RelatedKey, now: number): Record<string, unknown> {
  return { predecessor: relativeJson(predecessor, now), successor: relativeJson(successor, now) }
}

function relativeJson(key: Key | undefined, now: number): Record<string, unknown> | null {
  if (key === undefined) return null
  return { id: key.id, state: keyState(key, now), last_used_at: optionalRfc3339(key.lastUsedAt) }
}

/**
 * Notes about the keys in force that were made by rotations of a retiring key: a change of that key
 * does not restrict them.
 *
 * @param command Makes the change of one of them: words, without the name of the program.
 */
export async function keptNotes(
  store: Store,
  { output }: Invocation,
  key: Key,
  command: (id: string) => readonly string[],
): Promise<string[]> {
  const now = timeOf(store)
  if (keyState(key, now) !== 'retiring') return []
  const chain = await store.listChain(key.id, key.createdAt, now)
  return chain.filter(({ id, createdAt }) => id !== key.id && createdAt >= key.createdAt).map(({ id }) => {
    const words = command(id).map(shellQuote).join(' ')
    const remedy = output.command(words)
    return `Key ${id}, made by a rotation of this one, was not changed. To change it, too: ${remedy}`
  })
}

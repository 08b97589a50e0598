/** The keys that a key has replaced and is replaced by: whether the requests have moved from one to the other. */
import { keyState } from '../../core/keys/lifecycle.ts'
import { optionalRfc3339 } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'

/** A key with those before and after it in its chain of rotations. */
export interface RelatedKey extends Key {
  readonly predecessor: Key | undefined
  readonly successor: Key | undefined
}

export async function withRelatives(
  store: Pick<Store, 'findKey'>,
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

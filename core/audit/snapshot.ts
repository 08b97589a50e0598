/** What audit entries say of partners and keys: the texts that a replay compares with what is stored. */
import type { Key, Partner } from '../model.ts'

/** Member by member, in a fixed order: a new member of partners does not end up here by itself. */
export function partnerSnapshot({ slug, name, state, modules, limits, createdAt }: Partner): string {
  return JSON.stringify({ slug, name, state, modules, limits, createdAt })
}

/** Without the digest, for entries are shown to people: its hash tells whether it is still the same. */
export function keySnapshot(key: Key, sha256: (text: string) => string): string {
  return JSON.stringify({
    id: key.id,
    partner: key.partner,
    name: key.name,
    environment: key.environment,
    hint: key.hint,
    state: key.state,
    scopes: key.scopes,
    allow: key.allow,
    limits: key.limits,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    retiresAt: key.retiresAt,
    successorId: key.successorId,
    digestHash: sha256(key.digest),
  })
}

import type { Environment } from '../../../core/model.ts'
import type { SignupStore } from '../../../core/ports.ts'
import { dayOf } from '../../../core/reports/usage.ts'
import type { IdempotencyClaim, Signup, SignupOutcome } from '../../../core/signups/signup.ts'
import { type Place, START } from '../activity-places.ts'
import { newestFirst } from '../newest.ts'
import { type ClaimRow, CLAIMS_PRUNED, repeated, takenId, withoutKey } from '../signup-outcomes.ts'
import { readSignup, SIGNUP_COLUMNS, type SignupRow, signupRow } from '../signup-rows.ts'
import type { Database } from './database.ts'
import { transactionInTurn } from './patience.ts'

/** `SignupStore` of the ports, and what activity needs of it. */
export interface Signups extends SignupStore {
  /** Signups of one partner and kind of keys after a place. */
  readSignups(partner: string, environment: Environment, after: Place, limit: number): Signup[]
}

export function createSignups(database: Database): Signups {
  const insert = database.statement(
    `INSERT INTO signup (${SIGNUP_COLUMNS}) VALUES (${SIGNUP_COLUMNS.map((_, index) => `?${index + 1}`)})`,
  )
  const known = database.statement<[1]>('SELECT 1 FROM signup WHERE id = ?1')
  const keyOf = database.statement<[1]>('SELECT 1 FROM partner_key WHERE id = ?1 AND partner = ?2')
  const findClaim = database.statement<ClaimRow>(`
    SELECT fingerprint, signup_id, created_at FROM idempotency
    WHERE partner = ?1 AND environment = ?2 AND key = ?3 AND expires_at > ?4`)
  const putClaim = database.statement(`
    INSERT OR REPLACE INTO idempotency (partner, environment, key, fingerprint, signup_id, created_at, expires_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`)
  const expired = database.statement<[partner: string, environment: string, key: string]>(`
    SELECT partner, environment, key FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at
    LIMIT ${CLAIMS_PRUNED}`)
  const dropClaim = database.statement(
    'DELETE FROM idempotency WHERE partner = ?1 AND environment = ?2 AND key = ?3',
  )
  const tally = database.statement(`
    INSERT INTO signup_tally (partner, dimension, day, value, signups) VALUES (?1, ?2, ?3, ?4, 1)
    ON CONFLICT DO UPDATE SET signups = signups + 1`)
  const newest = database.statement<SignupRow>(`
    SELECT ${SIGNUP_COLUMNS} FROM signup WHERE (recency, id) > (?1, ?2) ORDER BY recency, id LIMIT ?3 + 0`)
  const newestOfPartner = database.statement<SignupRow>(`
    SELECT ${SIGNUP_COLUMNS} FROM signup
    WHERE partner = ?1 AND environment = ?2 AND (recency, id) > (?3, ?4) ORDER BY recency, id LIMIT ?5 + 0`)

  function keep(signup: Signup, claim: IdempotencyClaim | undefined): SignupOutcome {
    const { id, partner, environment, keyId, createdAt, country, plan } = signup
    if (claim !== undefined) {
      const found = findClaim.get(partner, environment, claim.key, createdAt)
      if (found !== undefined) return repeated(found, claim)
    }
    if (keyOf.get(keyId, partner) === undefined) throw withoutKey(signup)
    if (known.get(id) !== undefined) throw takenId(signup)
    insert.run(...signupRow(signup))
    if (environment === 'live') {
      const day = dayOf(createdAt)
      tally.run(partner, 'plan', day, plan ?? '')
      tally.run(partner, 'country', day, country ?? '')
    }
    for (const old of expired.all(createdAt)) dropClaim.run(...old)
    if (claim !== undefined) {
      const { key, fingerprint, expiresAt } = claim
      putClaim.run(partner, environment, key, fingerprint, id, createdAt, expiresAt)
    }
    return { outcome: 'created' }
  }

  function readSignups(partner: string, environment: Environment, after: Place, limit: number): Signup[] {
    return newestOfPartner.all(partner, environment, ...after, limit).map(readSignup)
  }

  return {
    createSignup: (signup, claim) => transactionInTurn(database, () => keep(signup, claim)),

    listSignups(partner, after, limit) {
      const place: Place = after === undefined ? START : [-after.createdAt, after.id]
      if (partner === undefined) return newest.all(...place, limit).map(readSignup)
      return database.snapshot(
        () => [...readSignups(partner, 'live', place, limit), ...readSignups(partner, 'test', place, limit)],
      )
        .map((signup) => ({ at: signup.createdAt, id: signup.id, signup }))
        .sort(newestFirst)
        .slice(0, limit)
        .map(({ signup }) => signup)
    },

    readSignups,
  }
}

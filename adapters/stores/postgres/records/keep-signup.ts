import type { IdempotencyClaim, Signup } from '../../../../core/signups/signup.ts'
import { dayOf } from '../../../../core/reports/usage.ts'
import type { ClaimRow } from '../../signup-outcomes.ts'
import { SIGNUP_COLUMNS, signupRow } from '../../signup-rows.ts'
import { SERVER_NOW } from '../sharing/forget.ts'
import { type Database, SET_DURABLE_COMMIT } from '../connection/database.ts'

/** What one attempt to keep a signup came to. */
export interface Attempt {
  readonly kept: boolean
  /** Whether the partner has the key, and whether there was a signup with this id before. */
  readonly hasKey: boolean
  readonly isKnown: boolean
  /** What holds the idempotency key since before. */
  readonly found: ClaimRow | undefined
}

/** Milliseconds for which an attempt waits for another one with its key before lock_not_available (55P03) ends it. */
export const PATIENCE_MS = 2_000

/** Rows that each count of signups is spread over: as many signups of a busy partner are counted at once. */
const slots = 4

/** A program whose clock is ahead ends nobody's claim: what has expired has expired by the server's clock as well. */
const ATTEMPTED_AT = `least($5::bigint, ${SERVER_NOW})`

type AttemptRow = [kept: boolean, hasKey: boolean, isKnown: boolean, ...(ClaimRow | [null, null, null])]

/**
 * Keeps a signup, unless its claim is held: all of it or nothing, in one statement, so that no lock waits for us. Who
 * claims a key at the same time as another waits for that one to end, and then neither keeps nor finds anything, since
 * it sees what there was when it began: it is to try again.
 */
export async function keepSignup(
  database: Database,
  signup: Signup,
  claim: IdempotencyClaim | undefined,
): Promise<Attempt> {
  const { createdAt, country, plan } = signup
  const slot = Math.floor(Math.random() * slots)
  const parameters = [...signupRow(signup), dayOf(createdAt), slot, country ?? '', plan ?? '']
  const [row] = claim === undefined
    ? await database.write<AttemptRow>(keepUnclaimed, parameters)
    : await database.write<AttemptRow>(keepClaimed, [
      ...parameters,
      claim.key,
      claim.fingerprint,
      claim.expiresAt,
    ])
  const [kept, hasKey, isKnown, ...found] = row!
  return { kept, hasKey, isKnown, found: found[0] === null ? undefined : found }
}

const keepClaimed = keeping(
  `found AS (
    SELECT fingerprint, signup_id, created_at FROM partner_api.idempotency
    WHERE partner = $2 AND environment = $4 AND key = $11 AND expires_at > ${ATTEMPTED_AT}
  )`,
  `INSERT INTO partner_api.idempotency AS held
    (partner, environment, key, fingerprint, signup_id, created_at, expires_at)
  SELECT $2::text, $4::text, $11::text, $12::text, $1::text, $5::bigint, $13::bigint FROM admitted
  WHERE NOT EXISTS (SELECT 1 FROM found)
  ON CONFLICT (partner, environment, key) DO UPDATE SET fingerprint = excluded.fingerprint,
    signup_id = excluded.signup_id, created_at = excluded.created_at, expires_at = excluded.expires_at
  WHERE held.expires_at <= ${ATTEMPTED_AT}
  RETURNING 1`,
)

const keepUnclaimed = keeping(
  'found AS (SELECT NULL AS fingerprint, NULL AS signup_id, NULL AS created_at)',
  'SELECT 1 FROM admitted',
)

/** Both settings last for this statement, wherever a pooler runs it; they apply because later parts read from there. */
function keeping(found: string, claim: string): string {
  return `
    WITH ${found},
    patience AS MATERIALIZED (SELECT set_config('lock_timeout', '${PATIENCE_MS}ms', true), ${SET_DURABLE_COMMIT}),
    owned AS (SELECT 1 FROM partner_api.partner_key WHERE id = $3 AND partner = $2),
    known AS (SELECT 1 FROM partner_api.signup WHERE id = $1),
    admitted AS (SELECT 1 FROM patience, owned WHERE NOT EXISTS (SELECT 1 FROM known)),
    claimed AS (${claim}),
    kept AS (
      INSERT INTO partner_api.signup (${SIGNUP_COLUMNS}, recency)
      SELECT $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::text, -$5::bigint FROM claimed
      RETURNING 1
    ),
    counted AS (
      INSERT INTO partner_api.signup_tally AS sums (partner, dimension, day, value, slot, signups)
      SELECT $2::text, dimension, $7::text, value, $8::integer, 1
      FROM kept, (VALUES ('country', $9::text), ('plan', $10::text)) AS counts (dimension, value)
      WHERE $4 = 'live' ORDER BY dimension
      ON CONFLICT (partner, dimension, day, value, slot) DO UPDATE SET signups = sums.signups + 1
    )
    SELECT EXISTS (SELECT 1 FROM kept), EXISTS (SELECT 1 FROM owned), EXISTS (SELECT 1 FROM known),
      fingerprint, signup_id, created_at
    FROM (SELECT 1) AS one LEFT JOIN found ON true`
}

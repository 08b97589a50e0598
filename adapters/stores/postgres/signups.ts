import { delay, timeout } from '../../../core/lib/promise.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type { SignupOutcome, SignupStore } from '../../../core/ports/signups.ts'
import { signupEvent } from '../../../core/webhooks/events.ts'
import {
  type Attempt,
  type ClaimRow,
  CLAIMS_PRUNED_PER_SIGNUP,
  createSignupGroups,
  duplicateIdError,
  readSignup,
  repeatedOutcome,
  SIGNUP_COLUMNS,
  type SignupRow,
  signupRow,
  unknownKeyError,
} from '../signups.ts'
import { enqueueSql } from '../webhooks.ts'
import type { Value } from '../row-format.ts'
import { StoreError } from '../store-error.ts'
import type { Database } from './database.ts'
import { isCommitUnknown, SqlError } from './errors.ts'
import { columnParameters, createPruner, SERVER_NOW, unnestColumns, WEBHOOK_DIALECT } from './sql.ts'

import { SET_DURABLE_COMMIT } from './transaction.ts'

/** Milliseconds to resend a signup whose outcome is unknown, and between two attempts. */
const resendTimeoutMs = 10_000
const resendPauseMs = 200

/** Milliseconds to wait for another attempt with the same idempotency key. */
const claimLockTimeoutMs = 2_000

/** Signups of one statement, and characters of their columns from which on it takes no more. */
const maxGroup = 100
const maxGroupBytes = 500_000

/** Milliseconds that a group waits for a lock which only one of its signups may need. */
const groupLockTimeoutMs = 100

/** Rows for each counter, so that concurrent signups of a partner do not wait for each other. */
const counterSlots = 4

const lockNotAvailable = '55P03'
const uniqueViolation = '23505'

export function createSignups(database: Database) {
  const pruneClaims = createPruner(database, {
    table: 'idempotency',
    key: ['partner', 'environment', 'key'],
    expiry: 'expires_at',
    batchSize: CLAIMS_PRUNED_PER_SIGNUP * maxGroup,
  })

  /**
   * Inserts a signup unless its idempotency key is taken, in one statement, so that no lock is held across a round trip. Of
   * two concurrent attempts with one key, the second waits for the first, then inserts nothing and finds nothing, since its
   * snapshot is older: try it again.
   *
   * @returns Undefined after the lock time-out.
   */
  async function attemptInsert({ signup, claim, isStored }: Attempt): Promise<AttemptRow | undefined> {
    const { createdAt, country, plan } = signup
    const slot = Math.floor(Math.random() * counterSlots)
    const { payload } = signupEvent(signup)
    const parameters = [...signupRow(signup), utcDay(createdAt), slot, country ?? '', plan ?? '', payload]
    try {
      const [row] = claim === undefined
        ? await database.write<AttemptRow>(insertUnclaimedSql, parameters)
        : await database.write<AttemptRow>(insertClaimedSql, [
          ...parameters,
          claim.key,
          claim.fingerprint,
          claim.expiresAt,
          isStored,
        ])
      return row
    } catch (error) {
      if (!(error instanceof SqlError)) throw error
      if (error.code === lockNotAvailable) return undefined
      // Inserted by another attempt since this one began.
      if (error.code === uniqueViolation) return [false, true, true, null, null, null]
      throw error
    }
  }

  /** @param isResent Whether the outcome of an earlier attempt is unknown. */
  async function insertOnce(attempt: Attempt, isResent: boolean): Promise<SignupOutcome> {
    const { signup, claim } = attempt
    const end = performance.now() + claimLockTimeoutMs
    while (performance.now() < end) {
      const row = await attemptInsert(attempt)
      if (row === undefined) break
      const [isCreated, hasKey, idExists, ...held] = row
      const isClaimed = held[0] !== null
      // The id was drawn for this signup: if it exists, the earlier attempt was committed.
      const wasCommitted = isResent && (isClaimed ? held[1] === signup.id : idExists)
      if (isCreated || wasCommitted) return { outcome: 'created' }
      if (isClaimed) return repeatedOutcome(held, claim!)
      if (!hasKey) throw unknownKeyError(signup)
      if (idExists) throw duplicateIdError(signup)
    }
    if (claim !== undefined && !isResent) return { outcome: 'conflict' }
    throw new StoreError(
      'unreachable',
      `The store ${database.place} delays a signup: other transactions hold its locks.`,
    )
  }

  /**
   * Resends a signup with the same id, which waits for an earlier attempt that is still in flight.
   *
   * @param isResent Whether the outcome of an earlier attempt is unknown.
   */
  async function insertUntilKnown(
    attempt: Attempt,
    isResent: boolean,
  ): Promise<SignupOutcome> {
    let end = isResent ? performance.now() + resendTimeoutMs : undefined
    for (;;) {
      try {
        return await insertOnce(attempt, end !== undefined)
      } catch (error) {
        const isUnreachable = error instanceof StoreError && error.code === 'unreachable'
        if (end === undefined ? !isCommitUnknown(error) : !isUnreachable) throw error
        end ??= performance.now() + resendTimeoutMs
        if (performance.now() + resendPauseMs > end) {
          throw new StoreError(
            'unreachable',
            `The store ${database.place} was lost while it stored a signup, which may be stored all the same.`,
            { cause: error },
          )
        }
      }
      await delay(resendPauseMs)
    }
  }

  /** @param isResent As of `insertUntilKnown`. */
  async function storeAlone(attempt: Attempt, isResent: boolean): Promise<void> {
    await insertUntilKnown(attempt, isResent).then(attempt.resolve, attempt.reject)
  }

  /**
   * Inserts the first of the signups in one statement. Those that it does not store, which are all of them if it fails,
   * are inserted one by one. Others do not wait for that, as they do not for a lone one whose idempotency key is locked.
   */
  async function storeGroup(waiting: Attempt[]): Promise<void> {
    const rows: Value[][] = []
    let bytes = 0
    while (rows.length < Math.min(waiting.length, maxGroup) && bytes < maxGroupBytes) {
      const row = groupRow(waiting[rows.length]!)
      bytes += row.join('').length
      rows.push(row)
    }
    const attempts = waiting.splice(0, rows.length)
    const [{ signup: { createdAt } }] = attempts as [Attempt]
    if (attempts.length === 1) {
      await timeout(storeAlone(attempts[0]!, false), groupLockTimeoutMs, () => undefined)
    } else {
      const slot = Math.floor(Math.random() * counterSlots)
      try {
        const found = await database.write<[id: string]>(insertGroupSql, [...columnParameters(rows), slot])
        const stored = new Set(found.map(([id]) => id))
        for (const attempt of attempts) {
          if (stored.has(attempt.signup.id)) attempt.resolve({ outcome: 'created' })
          else void storeAlone(attempt, false)
        }
      } catch (error) {
        const isUnknown = isCommitUnknown(error)
        for (const attempt of attempts) {
          if (isUnknown || error instanceof SqlError) void storeAlone(attempt, isUnknown)
          else attempt.reject(error)
        }
      }
    }
    pruneClaims(createdAt)
  }

  return {
    ...createSignupGroups(storeGroup),

    async findSignup(id) {
      const [row] = await database.read<SignupRow>(`${selectSignups} WHERE id = $1`, [id])
      return row && readSignup(row)
    },

    async listSignups(partner, after, limit) {
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      const rows = partner === undefined
        ? await database.read<SignupRow>(selectNewest, [createdAt, id, limit])
        : await database.read<SignupRow>(selectNewestOfPartner, [-createdAt, id, limit, partner])
      return rows.map(readSignup)
    },
  } satisfies SignupStore
}

const selectSignups = `SELECT ${SIGNUP_COLUMNS} FROM partner_api.signup`

const selectNewest = `${selectSignups}
  WHERE created_at <= $1 AND (created_at < $1 OR id > $2) ORDER BY created_at DESC, id LIMIT $3`

/** Merges the first of each environment, which are apart in the index. */
const selectNewestOfPartner = `
  SELECT ${SIGNUP_COLUMNS} FROM (VALUES ('live'), ('test')) AS kinds (kind) CROSS JOIN LATERAL (
    SELECT ${SIGNUP_COLUMNS}, recency FROM partner_api.signup
    WHERE partner = $4 AND environment = kind AND (recency, id) > ($1::bigint, $2::text)
    ORDER BY recency, id LIMIT $3
  ) AS first ORDER BY recency, id LIMIT $3`

/** `hasKey`: the key is the partner's. The last three: the earlier claim of the idempotency key. */
type AttemptRow = [isCreated: boolean, hasKey: boolean, idExists: boolean, ...(ClaimRow | [null, null, null])]

/** Claims have to be expired by the server's clock, too: this one may be fast. */
const ATTEMPTED_AT = `least($5::bigint, ${SERVER_NOW})`

/** The id is that of `signupEvent`. */
const signupEventSql = `SELECT 'msg_' || substr($1, 5) AS id, 'signup.created' AS type, $2::text AS partner,
  $5::bigint AS created_at, $11::text AS payload FROM kept`

const insertClaimedSql = insertSql(
  `found AS (
    SELECT fingerprint, signup_id, created_at FROM partner_api.idempotency
    WHERE partner = $2 AND environment = $4 AND key = $12 AND expires_at > ${ATTEMPTED_AT}
  )`,
  `INSERT INTO partner_api.idempotency AS held
    (partner, environment, key, fingerprint, signup_id, created_at, expires_at)
  SELECT $2::text, $4::text, $12::text, $13::text, $1::text, $5::bigint, $14::bigint FROM admitted
  WHERE NOT EXISTS (SELECT 1 FROM found)
  ON CONFLICT (partner, environment, key) DO UPDATE SET fingerprint = excluded.fingerprint,
    signup_id = excluded.signup_id, created_at = excluded.created_at, expires_at = excluded.expires_at
  WHERE held.expires_at <= ${ATTEMPTED_AT}
  RETURNING 1`,
  'WHERE $15::boolean',
)

const insertUnclaimedSql = insertSql(
  'found AS (SELECT NULL AS fingerprint, NULL AS signup_id, NULL AS created_at)',
  'SELECT 1 FROM admitted',
)

const groupColumns = [
  ...SIGNUP_COLUMNS,
  ...['day', 'country', 'plan', 'payload', 'claim_key', 'fingerprint', 'expires_at', 'is_stored'],
]

function groupRow({ signup, claim, isStored }: Attempt): Value[] {
  const { createdAt, country, plan } = signup
  return [
    ...[...signupRow(signup), utcDay(createdAt), country ?? '', plan ?? '', signupEvent(signup).payload],
    ...[claim?.key ?? null, claim?.fingerprint ?? null, claim?.expiresAt ?? null, String(isStored)],
  ]
}

/** In the order of idempotency keys and counters, so that groups do not deadlock. Returns the ids that are stored. */
const insertGroupSql = `
  WITH ${patienceSql(groupLockTimeoutMs)},
  given AS MATERIALIZED (
    SELECT * FROM ${unnestColumns(groupColumns)} WITH ORDINALITY AS given (${groupColumns}, position)
  ),
  admitted AS MATERIALIZED (
    SELECT given.* FROM patience CROSS JOIN given
    JOIN partner_api.partner_key AS owned ON owned.id = given.key_id AND owned.partner = given.partner
    WHERE NOT EXISTS (SELECT 1 FROM partner_api.signup AS known WHERE known.id = given.id)
  ),
  claimed AS (
    INSERT INTO partner_api.idempotency
      (partner, environment, key, fingerprint, signup_id, created_at, expires_at)
    SELECT partner, environment, claim_key, fingerprint, id, created_at, expires_at FROM admitted
    WHERE claim_key IS NOT NULL ORDER BY partner, environment, claim_key, position
    ON CONFLICT (partner, environment, key) DO NOTHING
    RETURNING signup_id
  ),
  created AS (
    SELECT * FROM admitted WHERE claim_key IS NULL OR id IN (SELECT signup_id FROM claimed)
  ),
  kept AS (
    INSERT INTO partner_api.signup (${SIGNUP_COLUMNS}, recency)
    SELECT ${SIGNUP_COLUMNS}, -created_at FROM created WHERE is_stored = 'true'
    RETURNING id
  ),
  counted AS (
    INSERT INTO partner_api.signup_tally AS sums (partner, dimension, day, value, slot, signups)
    SELECT partner, dimension, day, value, $${groupColumns.length + 1}::integer, count(*)
    FROM created CROSS JOIN LATERAL (VALUES ('country', country), ('plan', plan)) AS counts (dimension, value)
    WHERE environment = 'live' AND is_stored = 'true'
    GROUP BY partner, dimension, day, value ORDER BY partner, dimension, day, value
    ON CONFLICT (partner, dimension, day, value, slot) DO UPDATE SET signups = sums.signups + excluded.signups
  ),
  outbox AS (${
  enqueueSql(
    WEBHOOK_DIALECT,
    `SELECT 'msg_' || substr(id, 5) AS id, 'signup.created' AS type, partner, created_at, payload
    FROM created WHERE is_stored = 'true'`,
  )
})
  SELECT id FROM created`

function patienceSql(lockTimeoutMs: number): string {
  return `patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', '${lockTimeoutMs}ms', true), ${SET_DURABLE_COMMIT}
  )`
}

/** The settings last for this statement, on any connection of a pooler, and apply as later parts depend on them. */
function insertSql(found: string, claim: string, isStored = ''): string {
  return `
    WITH ${found},
    ${patienceSql(claimLockTimeoutMs)},
    owned AS (SELECT 1 FROM partner_api.partner_key WHERE id = $3 AND partner = $2),
    known AS (SELECT 1 FROM partner_api.signup WHERE id = $1),
    admitted AS (SELECT 1 FROM patience, owned WHERE NOT EXISTS (SELECT 1 FROM known)),
    claimed AS (${claim}),
    kept AS (
      INSERT INTO partner_api.signup (${SIGNUP_COLUMNS}, recency)
      SELECT $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::text, -$5::bigint FROM claimed ${isStored}
      RETURNING 1
    ),
    counted AS (
      INSERT INTO partner_api.signup_tally AS sums (partner, dimension, day, value, slot, signups)
      SELECT $2::text, dimension, $7::text, value, $8::integer, 1
      FROM kept, (VALUES ('country', $9::text), ('plan', $10::text)) AS counts (dimension, value)
      WHERE $4 = 'live' ORDER BY dimension
      ON CONFLICT (partner, dimension, day, value, slot) DO UPDATE SET signups = sums.signups + 1
    ),
    outbox AS (${enqueueSql(WEBHOOK_DIALECT, signupEventSql)})
    SELECT EXISTS (SELECT 1 FROM claimed), EXISTS (SELECT 1 FROM owned), EXISTS (SELECT 1 FROM known),
      fingerprint, signup_id, created_at
    FROM (SELECT 1) AS one LEFT JOIN found ON true`
}

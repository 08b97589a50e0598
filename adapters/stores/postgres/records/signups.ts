import type { SignupStore } from '../../../../core/ports.ts'
import type { IdempotencyClaim, Signup, SignupOutcome } from '../../../../core/signups/signup.ts'
import type { Asynchronous } from '../../answers.ts'
import { CLAIMS_PRUNED, repeated, takenId, withoutKey } from '../../signup-outcomes.ts'
import { readSignup, SIGNUP_COLUMNS, type SignupRow } from '../../signup-rows.ts'
import { StoreError } from '../../store-error.ts'
import { type Database, SqlError } from '../connection/database.ts'
import { isUncertain } from './decide.ts'
import { createForget } from '../sharing/forget.ts'
import { type Attempt, keepSignup, PATIENCE_MS } from './keep-signup.ts'

/** How long a signup is asked after that was lost on its way. */
const searchMs = 10_000

/** Between two questions, while the server is away. */
const pauseMs = 200

export function createSignups(database: Database): Asynchronous<SignupStore> {
  const forgetClaims = createForget(database, {
    table: 'idempotency',
    key: ['partner', 'environment', 'key'],
    until: 'expires_at',
    atOnce: CLAIMS_PRUNED,
  })

  /** @param sent Whether an attempt was lost before: it may have kept the signup, and still be about to. */
  async function keep(
    signup: Signup,
    claim: IdempotencyClaim | undefined,
    sent: boolean,
  ): Promise<SignupOutcome> {
    const end = performance.now() + PATIENCE_MS
    while (performance.now() < end) {
      const attempt = await attemptTo(keepSignup(database, signup, claim))
      if (attempt === undefined) break
      const { kept, hasKey, isKnown, found } = attempt
      // Nobody else has the id of what was sent before: it was drawn for this signup.
      const wasKept = sent && (found === undefined ? isKnown : found[1] === signup.id)
      if (kept || wasKept) return { outcome: 'created' }
      if (found !== undefined) return repeated(found, claim!)
      if (!hasKey) throw withoutKey(signup)
      if (isKnown) throw takenId(signup)
    }
    if (claim !== undefined && !sent) return { outcome: 'conflict' }
    throw new StoreError(
      'unreachable',
      `The store ${database.place} keeps a signup waiting: others hold what it needs.`,
    )
  }

  /** What was lost is sent again as it was: its id is the same, and it waits for what may still be under way. */
  async function keepUntilKnown(signup: Signup, claim: IdempotencyClaim | undefined): Promise<SignupOutcome> {
    let end: number | undefined
    for (;;) {
      try {
        return await keep(signup, claim, end !== undefined)
      } catch (error) {
        if (end === undefined ? !isUncertain(error) : !isUnreachable(error)) throw error
        end ??= performance.now() + searchMs
        if (performance.now() + pauseMs > end) {
          throw new StoreError(
            'unreachable',
            `The store ${database.place} was lost while it kept a signup, which may be there all the same.`,
            { cause: error },
          )
        }
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  return {
    async createSignup(signup, claim) {
      const outcome = await keepUntilKnown(signup, claim)
      if (outcome.outcome === 'created') forgetClaims(signup.createdAt)
      return outcome
    },

    async listSignups(partner, after, limit) {
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      const rows = partner === undefined
        ? await database.read<SignupRow>(newest, [createdAt, id, limit])
        : await database.read<SignupRow>(newestOfPartner, [-createdAt, id, limit, partner])
      return rows.map(readSignup)
    },
  }
}

const newest = `
  SELECT ${SIGNUP_COLUMNS} FROM partner_api.signup
  WHERE created_at <= $1 AND (created_at < $1 OR id > $2) ORDER BY created_at DESC, id LIMIT $3`

/** Live and test ones are apart in the index: what comes first of each is merged. */
const newestOfPartner = `
  SELECT ${SIGNUP_COLUMNS} FROM (VALUES ('live'), ('test')) AS kinds (kind) CROSS JOIN LATERAL (
    SELECT ${SIGNUP_COLUMNS}, recency FROM partner_api.signup
    WHERE partner = $4 AND environment = kind AND (recency, id) > ($1::bigint, $2::text)
    ORDER BY recency, id LIMIT $3
  ) AS first ORDER BY recency, id LIMIT $3`

/** @returns `undefined` when it has waited for others for too long. */
async function attemptTo(keeping: Promise<Attempt>): Promise<Attempt | undefined> {
  try {
    return await keeping
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    if (error.code === lockNotAvailable) return undefined
    // Somebody has kept one with this id since the attempt began.
    if (error.code === uniqueViolation) return { kept: false, hasKey: true, isKnown: true, found: undefined }
    throw error
  }
}

const lockNotAvailable = '55P03'
const uniqueViolation = '23505'

function isUnreachable(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'unreachable'
}

import type { Activity, ActivityQuery, ActivityType } from '../../../core/reports/activity.ts'
import type { Environment } from '../../../core/model.ts'
import { type EntryRow, readEntry } from '../entry-rows.ts'
import {
  activityOf,
  AUDITED_ACTIVITY,
  type Dated,
  EXPIRY_PREFIX,
  expiryOf,
  newestFirst,
  signupActivityId,
} from '../newest.ts'
import type { Database } from './database.ts'
import type { Place, Signups } from './signups.ts'
import { READ_COLUMNS } from './trail.ts'

/** The part of `Reports` that lists, synchronous. */
export interface ActivityList {
  listActivity(partner: string, query: ActivityQuery, now: number): readonly Activity[]
}

/** What is known of a row before it is its turn to be read. */
interface Candidate extends Dated {
  read(): Activity
}

/**
 * Merges what comes first of each type, for which there is an index each: no page looks at rows of which it shows none,
 * however many there are, nor reads entries that do not make it onto the page.
 */
export function createActivityList(database: Database, signups: Signups): ActivityList {
  // Rows outside of what the trail's head knows were put there past the store. Without the plus, SQLite would read the
  // trail in its own order and sort it.
  const entries = database.statement<[sequence: number, at: number, id: string]>(`
    SELECT sequence, -recency, id FROM audit
    WHERE partner = ?1 AND type = ?2 AND (recency, id) > (?3, ?4)
      AND +sequence BETWEEN 1 AND (SELECT audit_sequence FROM store)
    ORDER BY recency, id LIMIT ?5 + 0`)
  const entry = database.statement<EntryRow>(`SELECT ${READ_COLUMNS} FROM audit WHERE sequence = ?1`)
  const ended = database.statement<[id: string, hint: string, environment: string, at: number]>(`
    SELECT id, hint, environment, -end_recency FROM partner_key
    WHERE partner = ?1 AND end_recency IS NOT NULL AND (end_recency, id) > (?2, ?3)
    ORDER BY end_recency, id LIMIT ?4 + 0`)

  function candidates(type: ActivityType, partner: string, after: Dated, limit: number): Candidate[] {
    if (type === 'signup.created') {
      return signups.readSignups(partner, 'live', placeAmong('act_', after, 'sgn_'), limit).map((signup) => {
        const row: Activity = {
          id: signupActivityId(signup.id),
          at: signup.createdAt,
          type: 'signup.created',
          signup,
        }
        return { at: row.at, id: row.id, read: () => row }
      })
    }
    if (type === 'key.expired') {
      return ended.all(partner, ...placeAmong(EXPIRY_PREFIX, after, ''), limit).map(
        ([id, hint, environment, at]) => {
          const row = expiryOf({ id, hint, environment: environment as Environment }, at)
          return { at, id: row.id, read: () => row }
        },
      )
    }
    return entries.all(partner, type, -after.at, after.id, limit).map(([sequence, at, id]) => ({
      at,
      id,
      read: () => activityOf(readEntry(entry.get(sequence)!)),
    }))
  }

  return {
    listActivity(partner, { types, after, limit }, now) {
      const asked = types.length === 0 ? allTypes : new Set(types)
      // Ids are not empty, so that what happened at `now` is after this place.
      const start = after === undefined || after.at > now ? { at: now, id: '' } : after
      return database.snapshot(() =>
        [...asked].flatMap((type) => candidates(type, partner, start, limit))
          .sort(newestFirst)
          .slice(0, limit)
          .map(({ read }) => read())
      )
    },
  }
}

const allTypes: ReadonlySet<ActivityType> = new Set([...AUDITED_ACTIVITY, 'signup.created', 'key.expired'])

/** After every id. */
const lastId = '\u{10ffff}'

/**
 * The place of a row among rows whose ids are `prefix` and something, in terms of what they are made from: `stored` and
 * the same something.
 */
function placeAmong(prefix: string, { at, id }: Dated, stored: string): Place {
  if (id.startsWith(prefix)) return [-at, stored + id.slice(prefix.length)]
  return [-at, id < prefix ? '' : lastId]
}

import type { Environment } from '../../../core/model.ts'
import type { Reports } from '../../../core/ports.ts'
import { type Activity, ACTIVITY_TYPES, type ActivityType } from '../../../core/reports/activity.ts'
import { type ActivityPlaces, placesAfter } from '../activity-places.ts'
import { ENTRIES, READ_COLUMNS } from '../entry-rows.ts'
import { activityOf, type Dated, expiryOf, newestFirst, signupActivity } from '../newest.ts'
import type { StoredRow } from '../row-format.ts'
import type { Database } from './database.ts'
import type { Signups } from './signups.ts'

/** What is known of a row before it is its turn to be read. */
interface Candidate extends Dated {
  read(): Activity
}

/**
 * Merges what comes first of each type, for which there is an index each: no page looks at rows of which it shows none,
 * however many there are, nor reads entries that do not make it onto the page.
 */
export function createActivityList(database: Database, signups: Signups): Pick<Reports, 'listActivity'> {
  // Rows outside of what the trail's head knows were put there past the store. Without the plus, SQLite would read the
  // trail in its own order and sort it.
  const entries = database.statement<[sequence: number, at: number, id: string]>(`
    SELECT sequence, -recency, id FROM audit
    WHERE partner = ?1 AND type = ?2 AND (recency, id) > (?3, ?4)
      AND +sequence BETWEEN 1 AND (SELECT audit_sequence FROM store)
    ORDER BY recency, id LIMIT ?5 + 0`)
  const entry = database.statement<StoredRow>(`SELECT ${READ_COLUMNS} FROM audit WHERE sequence = ?1`)
  const ended = database.statement<[id: string, hint: string, environment: string, at: number]>(`
    SELECT id, hint, environment, -end_recency FROM partner_key
    WHERE partner = ?1 AND end_recency IS NOT NULL AND (end_recency, id) > (?2, ?3)
    ORDER BY end_recency, id LIMIT ?4 + 0`)

  function candidates(
    type: ActivityType,
    partner: string,
    places: ActivityPlaces,
    limit: number,
  ): Candidate[] {
    if (type === 'signup.created') {
      return signups.readSignups(partner, 'live', places.signups, limit).map(signupActivity).map(known)
    }
    if (type === 'key.expired') {
      return ended.all(partner, ...places.expiries, limit)
        .map(([id, hint, environment, at]) =>
          known(expiryOf({ id, hint, environment: environment as Environment }, at))
        )
    }
    return entries.all(partner, type, ...places.entries, limit).map(([sequence, at, id]) => ({
      at,
      id,
      read: () => activityOf(ENTRIES.read(entry.get(sequence)!)),
    }))
  }

  return {
    listActivity(partner, { types, after, limit }, now) {
      const asked = new Set(types.length === 0 ? ACTIVITY_TYPES : types)
      const places = placesAfter(after, now)
      return database.snapshot(() =>
        [...asked].flatMap((type) => candidates(type, partner, places, limit))
          .sort(newestFirst)
          .slice(0, limit)
          .map(({ read }) => read())
      )
    },
  }
}

function known(row: Activity): Candidate {
  return { at: row.at, id: row.id, read: () => row }
}

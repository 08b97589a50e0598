/** Reads that a standby answers, if it is up to date. */
import type { Revision } from '../../../core/ports/facts.ts'
import type { Query } from './connection.ts'
import type { Database, Reader } from './database.ts'
import { type Revisions, toChanges } from './revisions.ts'
import type { Standby } from './standby.ts'

/** Reads by what a standby did about them. The primary has done all but the first. */
export type StandbyReads = Readonly<Record<'answered' | 'behind' | 'failed' | 'not_asked', number>>

/** Milliseconds at most for which a standby that is behind is not asked. */
const longestPauseMs = 100

/**
 * The reads of a database that depend on one kind of data. With each, a standby is asked for its revision first, so that
 * its rows are of that revision or a later one. They are used if it is the one that the primary has confirmed last before
 * the read; else the primary is asked. Revisions of another history, such as that of a lost primary, equal none.
 */
export function createReader(
  database: Database,
  revisions: Revisions,
  kind: keyof Revision,
  counts: Record<keyof StandbyReads, number>,
): Reader {
  const { standby } = database
  if (standby === undefined) return database
  let behindSince: number | undefined
  let pausedUntil = 0
  /** Since the standby has responded. */
  let failures = 0
  let polling: Promise<Revision> | undefined

  /** Whether rows of a revision are new enough. Of one that is ahead, the primary has not been asked yet. */
  async function isCurrent(revision: string, confirmed: string): Promise<boolean> {
    if (revision === confirmed) return true
    if (toChanges(revision) <= toChanges(confirmed)) return false
    polling ??= revisions.current().finally(() => polling = undefined)
    return revision === (await polling)[kind]
  }

  async function ask<T>(
    options: Parameters<Standby['run']>[0],
    work: (query: Query) => Promise<T>,
    askPrimary: () => Promise<T>,
  ): Promise<T> {
    const confirmed = revisions.confirmed()?.[kind]
    const askedAt = performance.now()
    if (confirmed === undefined || askedAt < pausedUntil) {
      counts.not_asked++
      return askPrimary()
    }
    try {
      const found = await standby!.run(
        options,
        (query) => Promise.all([revisions.ofStandby(query, kind), work(query)]),
      )
      if (found !== undefined) failures = 0
      if (found === undefined) counts.not_asked++
      else if (await isCurrent(found[0], confirmed)) {
        counts.answered++
        behindSince = undefined
        return found[1]
      } else {
        counts.behind++
        const now = performance.now()
        behindSince ??= now
        // Asked in vain, it costs each read a round trip.
        pausedUntil = now + Math.min(longestPauseMs, (now - behindSince) / 8)
      }
    } catch {
      counts.failed++
      // One that hangs costs few reads their time. A single read may be slow by itself.
      const now = performance.now()
      if (failures++ > 0) pausedUntil = Math.max(pausedUntil, now + 4 * (now - askedAt))
    }
    return askPrimary()
  }

  return {
    lookUp: (...statement) =>
      ask({ isLookUp: true }, (query) => query(...statement), () => database.lookUp(...statement)),
    read: (...statement) => ask({}, (query) => query(...statement), () => database.read(...statement)),
    search: (work) => ask({ isSearch: true }, work, () => database.search(work)),
  }
}

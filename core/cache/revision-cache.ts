import type { MaybePromise } from '../lib/promise.ts'
import type { Revision } from '../ports/facts.ts'

/** The longest setting of stale-if-error: an hour. */
export const MAX_STALE_IF_ERROR_SECONDS = 3_600

/** How old the revision may be. */
export interface StalenessBounds {
  /** Milliseconds, 0–10,000; 0 reads it for every request. */
  readonly maxStalenessMs: number
  /** Milliseconds beyond that for which it is used while the source is down (RFC 5861 §4). Default 0. */
  readonly staleIfErrorMs?: number
}

/** A time in which an unconfirmed revision is used because the source is down, on the clock of `now`. */
export interface StaleWindow {
  /** When the source last confirmed it. */
  readonly since: number
  readonly until: number
}

/** Milliseconds between reads of the revision while the source is down and the revision stays in use. */
const outageRetryMs = 1_000

/** Notified of the outcome of reads. */
export interface RevisionListener {
  onChange?(): void
  /** The first failed read since a successful one. */
  onUnavailable?(error: unknown): unknown
  onRecovered?(): void
}

/** An instant on the clock of `now` and on the calendar: only the latter advances while a machine sleeps. */
interface Timestamp {
  readonly at: number
  readonly date: number
}

const never: Timestamp = { at: -Infinity, date: -Infinity }

/**
 * Caches the revision, which counts as confirmed from the moment at which its read started. It is
 * - missing until the first read and after `invalidate`: requests wait for a read.
 * - fresh up to half of `maxStalenessMs`: requests use it.
 * - aging up to `maxStalenessMs`: requests use it, and one of them reads it again in the background.
 * - expired then: requests wait for a read. While reads fail, they use it for up to `staleIfErrorMs`, and one of
 *   them reads it again every second.
 */
export class RevisionCache {
  readonly #readRevision: () => MaybePromise<Revision>
  readonly #maxStalenessMs: number
  readonly #staleIfErrorMs: number
  readonly #listener: RevisionListener
  readonly #calendarNow: () => number
  #current: Revision | undefined
  #confirmedAt = never
  #pending: Promise<Revision> | undefined
  #lastReadAt = never
  #isDown = false

  /**
   * @param calendarNow Milliseconds on the calendar. If it is set forward, the source is read once more than necessary.
   */
  constructor(
    readRevision: () => MaybePromise<Revision>,
    { maxStalenessMs, staleIfErrorMs = 0 }: StalenessBounds,
    listener: RevisionListener = {},
    calendarNow: () => number = Date.now,
  ) {
    this.#readRevision = readRevision
    this.#maxStalenessMs = maxStalenessMs
    this.#staleIfErrorMs = staleIfErrorMs
    this.#listener = listener
    this.#calendarNow = calendarNow
  }

  get isAvailable(): boolean {
    return !this.#isDown
  }

  /** Milliseconds since the source confirmed the revision; `undefined` before. */
  ageMs(now: number): number | undefined {
    return this.#current && this.#age(this.#confirmedAt, now)
  }

  /** The revision, confirmed within the bound. `now` is on a monotonic clock, and `date` on the calendar. */
  get(now: number, date?: number): MaybePromise<Revision> {
    const current = this.#current
    const ageMs = this.#age(this.#confirmedAt, now, date)
    if (current !== undefined && ageMs < this.#maxStalenessMs) {
      if (ageMs >= this.#maxStalenessMs / 2) this.#revalidateInBackground(now)
      // A source that needs no waiting has been read by now.
      return this.#current!
    }
    if (current !== undefined && this.staleWindow(now) !== undefined) {
      if (this.#age(this.#lastReadAt, now) >= outageRetryMs) this.#revalidateInBackground(now)
      return this.#current!
    }
    const isReading = this.#pending !== undefined && this.#age(this.#lastReadAt, now) < this.#maxStalenessMs
    const read = isReading ? this.#pending! : this.revalidate(now)
    if (this.#staleIfErrorMs === 0 || !(read instanceof Promise)) return read
    return read.catch((error: unknown) => {
      if (this.#current !== undefined && this.staleWindow(now) !== undefined) return this.#current
      throw error
    })
  }

  /** @returns The revision that is used from then on; rejects with what the source threw. */
  revalidate(now: number): MaybePromise<Revision> {
    const startedAt = this.#lastReadAt = { at: now, date: this.#calendarNow() }
    let read: MaybePromise<Revision>
    try {
      read = this.#readRevision()
    } catch (error) {
      read = Promise.reject(error)
    }
    if (!(read instanceof Promise)) return this.#recordRevision(read, startedAt)
    const recorded: Promise<Revision> = read
      .then(
        (revision) => this.#recordRevision(revision, startedAt),
        (error: unknown) => this.#recordFailure(error, startedAt),
      )
      .finally(() => {
        if (this.#pending === recorded) this.#pending = undefined
      })
    return this.#pending = recorded
  }

  /** The time in which the revision is used while the source is down; `undefined` when that does not apply. */
  staleWindow(now: number): StaleWindow | undefined {
    if (this.#staleIfErrorMs === 0 || !this.#isDown) return undefined
    const usableMs = this.#maxStalenessMs + this.#staleIfErrorMs
    const since = this.#confirmedAt.at
    return this.#age(this.#confirmedAt, now) < usableMs ? { since, until: since + usableMs } : undefined
  }

  /** Discards everything that was read before `now`. */
  invalidate(now: number): void {
    this.#current = this.#pending = undefined
    this.#confirmedAt = { at: now, date: this.#calendarNow() }
  }

  #age(timestamp: Timestamp, now: number, date: number = this.#calendarNow()): number {
    return Math.max(now - timestamp.at, date - timestamp.date)
  }

  #revalidateInBackground(now: number): void {
    if (this.#pending !== undefined) return
    const read = this.revalidate(now)
    if (read instanceof Promise) read.catch(() => undefined)
  }

  #recordRevision(revision: Revision, startedAt: Timestamp): Revision {
    const current = this.#current
    if (startedAt.at < this.#confirmedAt.at) return current ?? revision
    this.#confirmedAt = startedAt
    if (this.#isDown) this.#listener.onRecovered?.()
    this.#isDown = false
    if (current?.facts === revision.facts && current.content === revision.content) return current
    this.#current = revision
    this.#listener.onChange?.()
    return revision
  }

  #recordFailure(error: unknown, startedAt: Timestamp): never {
    if (startedAt.at >= this.#confirmedAt.at) {
      if (!this.#isDown) this.#listener.onUnavailable?.(error)
      this.#isDown = true
    }
    throw error
  }
}

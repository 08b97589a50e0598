/** Requests of live keys, counted by partner, day and endpoint since the last flush. */
export interface UsageCount {
  /** Slug of the partner. */
  readonly partner: string
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string
  /** The route's name, which no release changes. */
  readonly endpoint: string
  /** 1 or more. */
  readonly requests: number
  /** Those of the requests that were answered with a status of 400 or above. */
  readonly errors: number
}

/** The day of an instant, `YYYY-MM-DD` in UTC. */
export function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10)
}

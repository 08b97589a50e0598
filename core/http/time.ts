/** An instant as RFC 3339 text in UTC with milliseconds. */
export function rfc3339(instant: number): string {
  return new Date(instant).toISOString()
}

/** An instant that may be absent, as the wire says it. */
export function optionalRfc3339(instant: number | undefined): string | null {
  return instant === undefined ? null : rfc3339(instant)
}

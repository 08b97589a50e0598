const form = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/**
 * Reads an instant in RFC 3339 §5.6 with an offset. Fractions beyond milliseconds are cut off. Leap seconds
 * (`:60`) and dates that are in no calendar are refused.
 *
 * @returns Milliseconds since the epoch, or undefined; never one that falls outside the years 0–9999 in UTC.
 */
export function parseInstant(text: string): number | undefined {
  const [, date = '', time = '', fraction = '', sign, hours, minutes] = form.exec(text) ?? []
  const local = Date.parse(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Engines differ in whether they turn 30 February into 2 March or refuse it.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 19) !== `${date}T${time}`) {
    return undefined
  }
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  const instant = sign === '-' ? local + offset : local - offset
  return instant >= firstInstant && instant <= lastInstant ? instant : undefined
}

const firstInstant = Date.parse('0000-01-01T00:00:00.000Z')
const lastInstant = Date.parse('9999-12-31T23:59:59.999Z')

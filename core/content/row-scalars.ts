/** Values in rows of custom directories and in the JSON of stores. */
import * as v from 'valibot'
import { INSTANT, mustBe } from './fields.ts'
import type { Scalars } from './scalars.ts'

/** Drivers return an integer of 64 bits, such as a count, as a bigint or as text. */
export function toInteger(value: unknown, min = -Infinity, max = Infinity): number | undefined {
  const isConverted = typeof value === 'bigint' || typeof value === 'string' && /^-?\d{1,16}$/.test(value)
  const number = isConverted ? Number(value) : value as number
  return Number.isSafeInteger(number) && number >= min && number <= max ? number : undefined
}

/** What messages call an instant. */
export const INSTANT_NAME = 'whole milliseconds since the epoch'

/** Reads an instant in milliseconds since the epoch, within the years 0–9999 of RFC 3339. */
export function toInstant(value: unknown): number | undefined {
  return toInteger(value, -62_167_219_200_000, 253_402_300_799_999)
}

/** A value that is converted. @param convert Returns `undefined` for anything but what `expected` names. */
function converted(expected: string, convert: (value: unknown) => number | undefined) {
  return v.rawTransform<unknown, number>(({ dataset: { value }, addIssue, NEVER }) => {
    const result = convert(value)
    if (result !== undefined) return result
    addIssue({ message: mustBe(expected, value) })
    return NEVER
  })
}

const anyText = v.custom<string>(
  (value) => typeof value === 'string' && value !== '',
  ({ input }) => mustBe('text', input),
)

/** Values in rows: texts of any length, and codes in their form. */
export const ROW: Scalars = {
  text: () => anyText,
  url: anyText,
  email: anyText,
  code: ({ name, noun = name, isValid }) =>
    v.custom<string>(
      (value) => typeof value === 'string' && isValid(value),
      ({ input }) => mustBe(noun, input),
    ),
  oneOf: (words, name) => v.picklist(words, ({ input }) => mustBe(name, input)),
  reference: () => anyText,
  integer: () => v.pipe(v.unknown(), converted('an integer', toInteger)),
  flag: v.boolean(),
  instant: v.pipe(v.unknown(), INSTANT, converted(INSTANT_NAME, toInstant)),
  list: (_max, item) => v.array(item, ({ input }) => mustBe('a list', input)),
  checked: (schema) => schema,
}

/** Schemas for the fields of content lines. Every message is a clause about the field. */
import * as v from 'valibot'
import { containsKey, formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { EMAIL_PATTERN, SLUG_PATTERN } from '../lib/text.ts'
import { parseInstant } from '../lib/time.ts'

/** An error message that also shows the value. */
export function mustBe(expected: string): (issue: { readonly input: unknown }) => string {
  return ({ input }) => `must be ${expected}, not ${formatValue(input)}`
}

/** @param validate Returns an error message, or `undefined`. */
export function customCheck<T>(validate: (value: T) => string | undefined): v.RawCheckAction<T> {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    const message = dataset.typed ? validate(dataset.value) : undefined
    if (message !== undefined) addIssue({ message })
  })
}

/** Two fields of an object that have an order; an absent one is no bound. */
export type FieldOrder = readonly [high: string, relation: 'after' | 'at least', low: string]

/**
 * An object with these fields and no others. valibot's own strict object stops at the first unknown name and ignores
 * `constructor` and `__proto__`.
 */
export function strictFields<const E extends v.ObjectEntries>(
  entries: E,
  order?: FieldOrder,
): v.GenericSchema<unknown, v.InferOutput<v.ObjectSchema<E, undefined>>> {
  const schema = v.object(entries, 'is missing')
  return v.pipe(
    v.custom<Readonly<Record<string, unknown>>>(isObject, mustBe('an object')),
    v.rawTransform(({ dataset: { value }, addIssue, NEVER }) => {
      const addFieldIssue = (key: string, message: string) =>
        addIssue({
          message,
          path: [{ type: 'unknown', origin: 'key', input: value, key, value: value[key] }],
        })
      for (const name of Object.keys(value)) {
        if (!Object.hasOwn(entries, name)) addFieldIssue(name, 'is not a known field')
      }
      const result = v.safeParse(schema, value)
      for (const { message, path } of result.issues ?? []) addIssue(path ? { message, path } : { message })
      // Also when other fields failed, so that all errors of a line are reported at once.
      if (order !== undefined && isMisordered(result.output as Readonly<Record<string, unknown>>, order)) {
        addFieldIssue(order[0], `must be ${order[1]} ${order[2]}`)
      }
      return result.success ? result.output : NEVER
    }),
  )
}

function isMisordered(values: Readonly<Record<string, unknown>>, [high, relation, low]: FieldOrder): boolean {
  const [from, to] = [values[low], values[high]]
  if (typeof from !== 'number' || typeof to !== 'number') return false
  return relation === 'after' ? to <= from : to < from
}

/** Text of 1 to `max` code points. */
export function text(max: number): v.GenericSchema<unknown, string> {
  return v.pipe(v.string(mustBe('text')), customCheck((value) => textError(value, max)))
}

function textError(value: string, max: number): string | undefined {
  const points = value.length <= max ? value.length : Array.from(value).length
  if (value === '' || points > max) return `must have 1–${max} characters, not ${points}`
  // PostgreSQL cannot store NUL, and UTF-8 cannot encode lone surrogates.
  if (value.includes('\0')) return 'must not contain the character NUL'
  if (!value.isWellFormed()) return 'must be well-formed Unicode: half of a surrogate pair is missing'
  if (containsKey(value)) return 'must not contain a key: content is public'
  return undefined
}

/** @param refersTo Returns an error message for a slug that refers to nothing. */
export function slug(
  refersTo: (slug: string) => string | undefined = () => undefined,
): v.GenericSchema<unknown, string> {
  const form = mustBe('a slug (1–80 of a-z, 0-9 and -, a letter or digit first)')
  return v.pipe(
    v.string(mustBe('a slug')),
    customCheck((value) => SLUG_PATTERN.test(value) ? refersTo(value) : form({ input: value })),
  )
}

export function code(
  isCode: (text: string) => boolean,
  expected: string,
): v.GenericSchema<unknown, string> {
  return v.pipe(v.string(mustBe('text')), v.check(isCode, mustBe(expected)))
}

export function email(): v.GenericSchema<unknown, string> {
  return v.pipe(text(254), v.regex(EMAIL_PATTERN, mustBe('an e-mail address')))
}

/** An absolute `http` or `https` URL of at most 2,048 characters, kept as written. */
export function webUrl(): v.GenericSchema<unknown, string> {
  return v.pipe(
    text(2_048),
    // The URL parser drops white space and control characters, and accepts missing slashes.
    v.check(
      (value) => /^https?:\/\/[^\s\p{Cc}]+$/iu.test(value) && URL.canParse(value),
      mustBe('an absolute http or https URL'),
    ),
  )
}

/** An RFC 3339 instant, as milliseconds since the epoch. */
export function instant(): v.GenericSchema<unknown, number> {
  const form = mustBe('a date and time in RFC 3339 with an offset, such as 2026-01-31T09:30:00Z')
  return v.pipe(
    v.string(form),
    v.rawTransform(({ dataset: { value }, addIssue, NEVER }) => {
      const parsed = parseInstant(value)
      if (parsed === undefined) addIssue({ message: form })
      return parsed ?? NEVER
    }),
  )
}

/** A safe integer. */
export function integer(min = -Infinity, max = Infinity): v.GenericSchema<unknown, number> {
  const lower = min === -Infinity ? '' : ` from ${min}`
  const form = mustBe(`a whole number${lower}${max === Infinity ? '' : ` to ${max}`}`)
  return v.pipe(
    v.number(form),
    v.check((value) => Number.isSafeInteger(value) && value >= min && value <= max, form),
  )
}

export function list<T>(item: v.GenericSchema<unknown, T>, max: number): v.GenericSchema<unknown, T[]> {
  return v.pipe(
    v.array(item, mustBe('a list')),
    v.maxLength(max, ({ input }) => `must have at most ${max} items, not ${input.length}`),
  )
}

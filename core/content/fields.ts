/** What the fields of content lines are made of. Every message is a clause about the field. */
import * as v from 'valibot'
import { containsKey, formatValue } from '../http/redact.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { parseInstant } from '../lib/time.ts'

/** What lines may refer to. What is not given is not looked at. */
export interface References {
  /** The industries that exist, each with its parent. */
  readonly industries?: ReadonlyMap<string, string | undefined>
  /** Slugs of all partners. */
  readonly partners?: ReadonlySet<string>
}

/** Says what a value has to be and what arrived instead. */
export function mustBe(what: string): (issue: { readonly input: unknown }) => string {
  return ({ input }) => `must be ${what}, not ${formatValue(input)}`
}

/** A check that says itself what is wrong, or `undefined`. */
export function check<T>(validate: (value: T) => string | undefined): v.RawCheckAction<T> {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    const message = dataset.typed ? validate(dataset.value) : undefined
    if (message !== undefined) addIssue({ message })
  })
}

/** Two numbers of an object that must not be the wrong way round; an absent one is no bound. */
export interface FieldOrder {
  readonly low: string
  readonly high: string
  /** How `high` has to stand to `low`. */
  readonly relation: 'after' | 'at least'
}

/**
 * An object with these fields and no others. valibot's own strict object stops at the first unknown name and
 * passes over `constructor` and `__proto__`.
 */
export function strictFields<const E extends v.ObjectEntries>(
  entries: E,
  order?: FieldOrder,
): v.GenericSchema<unknown, v.InferOutput<v.ObjectSchema<E, undefined>>> {
  const schema = v.object(entries, 'is missing')
  return v.pipe(
    v.custom<Readonly<Record<string, unknown>>>(isRecord, mustBe('an object')),
    v.rawTransform(({ dataset: { value }, addIssue, NEVER }) => {
      const addFieldIssue = (key: string, message: string) =>
        addIssue({
          message,
          path: [{ type: 'unknown', origin: 'key', input: value, key, value: value[key] }],
        })
      for (const name of Object.keys(value)) {
        if (!Object.hasOwn(entries, name)) addFieldIssue(name, 'is not a field that belongs here')
      }
      const result = v.safeParse(schema, value)
      for (const { message, path } of result.issues ?? []) addIssue(path ? { message, path } : { message })
      // Also when other fields failed: all that is wrong with a line is said at once.
      if (order !== undefined && isMisordered(result.output as Readonly<Record<string, unknown>>, order)) {
        addFieldIssue(order.high, `must be ${order.relation} ${order.low}`)
      }
      return result.success ? result.output : NEVER
    }),
  )
}

function isMisordered(
  values: Readonly<Record<string, unknown>>,
  { low, high, relation }: FieldOrder,
): boolean {
  const from = values[low]
  const to = values[high]
  if (typeof from !== 'number' || typeof to !== 'number') return false
  return relation === 'after' ? to <= from : to < from
}

/** Whether a value of JSON is an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Text of 1 to `max` code points. */
export function text(max: number): v.GenericSchema<unknown, string> {
  return v.pipe(v.string(mustBe('text')), check((value) => textError(value, max)))
}

function textError(value: string, max: number): string | undefined {
  const points = value.length <= max ? value.length : Array.from(value).length
  if (value === '' || points > max) return `must have 1–${max} characters, not ${points}`
  // PostgreSQL cannot keep NUL, and no encoding of UTF-8 has lone surrogates.
  if (value.includes('\0')) return 'must not hold the character NUL'
  if (!value.isWellFormed()) return 'must be well-formed Unicode: half of a surrogate pair is missing'
  if (containsKey(value)) return 'must not hold a key: content is public'
  return undefined
}

/** A slug; `exists` says what is wrong when it refers to nothing. */
export function slug(exists?: (slug: string) => string | undefined): v.GenericSchema<unknown, string> {
  return v.pipe(
    v.string(mustBe('a slug')),
    check((value) =>
      SLUG_PATTERN.test(value)
        ? exists?.(value)
        : `must be a slug (1–80 of a-z, 0-9 and -, a letter or digit first), not ${formatValue(value)}`
    ),
  )
}

/** The slug of a partner that exists. Removed ones do: their slugs stay taken, and exports name them. */
export function partnerSlug({ partners }: References): v.GenericSchema<unknown, string> {
  return slug((value) =>
    partners === undefined || partners.has(value)
      ? undefined
      : `must be a partner that exists, not ${formatValue(value)}`
  )
}

/** An absolute `http` or `https` URL of at most 2,048 characters, as it was written. */
export function webUrl(): v.GenericSchema<unknown, string> {
  return v.pipe(
    text(2_048),
    // The URL parser drops white space and control characters, and forgives missing slashes.
    v.check(
      (value) => /^https?:\/\/[^\s\p{Cc}]+$/iu.test(value) && URL.canParse(value),
      mustBe('an absolute http or https URL'),
    ),
  )
}

/** An instant, as milliseconds since the epoch. */
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

/** An integer that a number holds exactly. */
export function integer(
  min: number = Number.MIN_SAFE_INTEGER,
  max: number = Number.MAX_SAFE_INTEGER,
): v.GenericSchema<
  unknown,
  number
> {
  const range = min === Number.MIN_SAFE_INTEGER
    ? ''
    : max === Number.MAX_SAFE_INTEGER
    ? ` from ${min}`
    : ` from ${min} to ${max}`
  const form = mustBe(`a whole number${range}`)
  return v.pipe(
    v.number(form),
    v.check((value) => Number.isSafeInteger(value) && value >= min && value <= max, form),
  )
}

/** A list of at most `max` items. */
export function list<T>(item: v.GenericSchema<unknown, T>, max: number): v.GenericSchema<unknown, T[]> {
  return v.pipe(
    v.array(item, mustBe('a list')),
    v.maxLength(max, ({ input }) => `must have at most ${max} items, not ${input.length}`),
  )
}

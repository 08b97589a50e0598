/** Values in lines of imports, each with the sentence of its error. */
import * as v from 'valibot'
import { containsKey } from '../http/redact.ts'
import { parseInstant } from '../lib/time.ts'
import { partRule, rule } from '../lib/schema-rules.ts'
import { INSTANT, mustBe, type Schema } from './fields.ts'
import { EMAIL_PATTERN, type Form, type Scalars, SLUG } from './scalars.ts'

/** Text with a check. @param noun What messages ask for instead of a value that is not text. */
export function checkedText(noun: string, check: (text: string) => string | undefined): Schema<string> {
  return v.pipe(v.string(({ input }) => mustBe(noun, input)), rule(check))
}

/** Text whose errors do not show it: it may contain a key by mistake. */
export function secretText(noun: string, check: (text: string) => string | undefined): Schema<string> {
  return v.pipe(v.string(`must be ${noun}`), rule(check))
}

/** The error of a text in another form. */
function formError({ name, isValid }: Form, text: string): string | undefined {
  return isValid(text) ? undefined : mustBe(name, text)
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

/**
 * The form of a URL, which is kept as written. The URL parser drops white space and control characters, and
 * accepts missing slashes.
 */
const urlForm: Form = {
  name: 'an absolute http or https URL',
  isValid: (text) => /^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) && URL.canParse(text),
}

const emailForm: Form = { name: 'an e-mail address', isValid: (text) => EMAIL_PATTERN.test(text) }

const instantName = 'a date and time in RFC 3339 with an offset, such as 2026-01-31T09:30:00Z'

/** Values in lines. */
export const LINE: Scalars = {
  text: (max) => checkedText('text', (text) => textError(text, max)),
  url: checkedText('text', (text) => textError(text, 2_048) ?? formError(urlForm, text)),
  email: checkedText('text', (text) => textError(text, 254) ?? formError(emailForm, text)),
  code: (form) => checkedText(form.noun ?? 'text', (text) => formError(form, text)),
  oneOf: (words, name) => v.picklist(words, ({ input }) => mustBe(name, input)),
  reference: (noun, known) =>
    checkedText(SLUG.noun, (slug) => {
      const isKnown = known === undefined || known.has(slug)
      return formError(SLUG, slug) ?? (isKnown ? undefined : mustBe(`${noun} that exists`, slug))
    }),
  integer(min = -Infinity, max = Infinity) {
    const lower = min === -Infinity ? '' : ` from ${min}`
    const name = `a whole number${lower}${max === Infinity ? '' : ` to ${max}`}`
    return v.custom<number>(
      (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
      ({ input }) => mustBe(name, input),
    )
  },
  instant: v.pipe(
    v.unknown(),
    INSTANT,
    v.rawTransform<unknown, number>(({ dataset: { value }, addIssue, NEVER }) => {
      const instant = typeof value === 'string' ? parseInstant(value) : undefined
      if (instant !== undefined) return instant
      addIssue({ message: mustBe(instantName, value) })
      return NEVER
    }),
  ),
  flag: v.boolean(({ input }) => mustBe('true or false', input)),
  list: (max, item, check = () => undefined, noun = 'a list') =>
    v.pipe(
      v.array(item, ({ input }) => mustBe(noun, input)),
      partRule((items) => {
        if (!Array.isArray(items)) return undefined
        return items.length > max ? `must have at most ${max} items, not ${items.length}` : check(items)
      }),
    ),
  checked: (schema, check) => v.pipe(schema, partRule(check)),
}

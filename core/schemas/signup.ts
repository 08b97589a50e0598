import * as v from 'valibot'
import { COUNTRY_CODE_INPUT, isLocale, LOCALE_PATTERN, parseCountryCode } from '../content/iso-codes.ts'
import { containsKey } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { parseInstant } from '../lib/time.ts'
import type { SignupInput } from '../ports/signups.ts'
import { partnerSchema } from './fields.ts'

/** PostgreSQL cannot store NUL, UTF-8 cannot encode lone surrogates, and keys are never stored (contract, section 6). */
function isStorable(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed() && !containsKey(value)
}

function text(min: number, max: number, description = '', example = '') {
  const length = `must have ${min}–${max} characters`
  return v.pipe(
    v.string('must be text'),
    v.minCodePoints(min, length),
    v.maxCodePoints(max, length),
    v.check(isStorable, 'must be well-formed Unicode without NUL, and must not hold a key'),
    v.metadata({ description, examples: [example] }),
  )
}

/** Text on one line that is either empty, if allowed, or visible. */
function line(min: number, max: number, description: string, example: string) {
  return v.pipe(
    text(min, max, description, example),
    v.check(
      (value) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value),
      'must not hold control characters or line breaks',
    ),
    v.check((value) => value === '' || /[^\p{C}\p{Z}]/u.test(value), 'must not be blank'),
  )
}

function checkedText(
  isValid: (value: string) => boolean,
  message: string,
  description: Readonly<Record<string, unknown>>,
) {
  return v.pipe(v.string('must be text'), v.check(isValid, message), v.metadata(description))
}

function slugOf(what: string, message: string, example: string) {
  const description = { description: `Slug of the ${what}.`, maxLength: 80, examples: [example] }
  return v.pipe(v.string('must be text'), v.regex(SLUG_PATTERN, message), v.metadata(description))
}

const maxMetadata = 20
const metadataName = text(1, 40)
const metadataValue = text(0, 500)

/** valibot's record ignores members with names such as `constructor`. */
const metadata = v.pipe(
  v.custom<Readonly<Record<string, unknown>>>(isObject, 'must be an object'),
  v.metadata({
    description: 'Additional data of the form: names of 1–40, values of up to 500 characters.',
    type: 'object',
    maxProperties: maxMetadata,
    propertyNames: { type: 'string', minLength: 1, maxLength: 40 },
    additionalProperties: { type: 'string', maxLength: 500 },
    examples: [{ campaign: 'spring' }],
  }),
  v.rawTransform<Readonly<Record<string, unknown>>, Readonly<Record<string, string>>>(
    ({ dataset: { value }, addIssue }) => {
      const pairs = Object.entries(value)
      for (const [name, member] of pairs) {
        const [wrong] = v.safeParse(metadataName, name).issues ?? []
        const [issue] = v.safeParse(metadataValue, member).issues ?? []
        const message = wrong === undefined ? issue?.message : `has a name that ${wrong.message}`
        if (message === undefined) continue
        addIssue({
          message,
          path: [{ type: 'unknown', origin: 'value', input: value, key: name, value: member }],
        })
      }
      if (pairs.length > maxMetadata) addIssue({ message: `must have at most ${maxMetadata} members` })
      return Object.fromEntries(pairs) as Readonly<Record<string, string>>
    },
  ),
)

export const PLAN_MESSAGE = 'must be a plan that exists'
/** The same for profiles hidden from the partner, so that it does not reveal them. */
export const PROFILE_MESSAGE = 'must be a profile that exists'

export const signupSchema: v.GenericSchema<unknown, SignupInput> = v.pipe(
  v.strictObject({
    partner: partnerSchema,
    email: v.pipe(
      v.string('must be text'),
      v.maxLength(254, 'must have at most 254 characters'),
      v.rfcEmail('must be an e-mail address'),
      v.check(isStorable, 'must not hold a key'),
      v.metadata({ description: 'E-mail address.', examples: ['jane@example.com'] }),
    ),
    name: line(1, 200, 'Name of the person: one line, not blank.', 'Jane Doe'),
    company: v.nullish(line(0, 200, 'Name of the company: one line, empty or not blank.', 'Example Ltd')),
    country: v.nullish(
      checkedText(
        (code) => parseCountryCode(code) !== undefined,
        'must be an assigned ISO 3166-1 alpha-2 code',
        { description: 'ISO 3166-1 alpha-2 or `XK`, in either case.', ...COUNTRY_CODE_INPUT },
      ),
    ),
    plan: v.nullish(slugOf('plan', PLAN_MESSAGE, 'starter')),
    profile: v.nullish(slugOf('profile', PROFILE_MESSAGE, 'nordlichter-frachtkontor')),
    locale: v.nullish(
      checkedText(isLocale, 'must be a BCP 47 language tag', {
        description: 'Language of the form, BCP 47.',
        pattern: LOCALE_PATTERN,
        maxLength: 255,
        examples: ['en-GB'],
      }),
    ),
    message: v.nullish(text(0, 2000, 'Free text.', 'Please call me back.')),
    consent_at: v.nullish(
      checkedText(
        (instant) => parseInstant(instant) !== undefined,
        'must be an RFC 3339 date and time with an offset',
        {
          description: 'When the person agreed to be contacted.',
          format: 'date-time',
          maxLength: 64,
          examples: ['2026-11-20T09:00:00Z'],
        },
      ),
    ),
    metadata: v.nullish(metadata),
  }),
  v.transform(({ email, name, company, country, plan, profile, locale, message, consent_at, metadata }) => ({
    email,
    name,
    company: company ?? undefined,
    country: country?.toUpperCase(),
    plan: plan ?? undefined,
    profile: profile ?? undefined,
    locale: locale ?? undefined,
    message: message ?? undefined,
    consentAt: typeof consent_at === 'string' ? parseInstant(consent_at) : undefined,
    metadata: metadata ?? {},
  })),
)

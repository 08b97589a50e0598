/** The members of a signup. `core/openapi/route-inputs.ts` describes them. */
import { COUNTRY_MESSAGE, isLocale, LOCALE_MESSAGE, parseCountryCode } from '../content/iso-codes.ts'
import type { BodyDef, MemberCheck, MemberError } from '../http/body.ts'
import { containsKey } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { EMAIL_PATTERN, SLUG_PATTERN } from '../lib/text.ts'
import { parseInstant } from '../lib/time.ts'
import type { SignupInput } from '../ports/signups.ts'

export const PLAN_MESSAGE = 'must be a plan that exists'
/** The same for profiles hidden from the partner, so that it does not reveal them. */
export const PROFILE_MESSAGE = 'must be a profile that exists'

/** @param rules Each with its error message; the first that a text breaks is reported. */
function text(...rules: readonly (readonly [message: string, isValid: (text: string) => boolean])[]) {
  return (value: unknown): string | undefined =>
    typeof value !== 'string' ? 'must be text' : rules.find(([, isValid]) => !isValid(value))?.[0]
}

const required = (check: MemberCheck): MemberCheck => (value) =>
  value === undefined ? 'is required' : check(value)
const optional = (check: MemberCheck): MemberCheck => (value) => value == null ? undefined : check(value)

/** PostgreSQL cannot store NUL, UTF-8 cannot encode lone surrogates, and keys are never stored (contract, section 6). */
function isStorable(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed() && !containsKey(value)
}

/** Lengths are in code points. */
function storable(min: number, max: number) {
  return text(
    [`must have ${min}–${max} characters`, (value) => value.length >= min && isWithin(value, max)],
    ['must be well-formed Unicode without NUL, and must not hold a key', isStorable],
  )
}

function isWithin(value: string, max: number): boolean {
  return value.length <= max || value.length <= 2 * max && [...value].length <= max
}

/** Text on one line that is either empty, if allowed, or visible. */
function line(min: number, max: number): MemberCheck {
  const checkText = storable(min, max)
  const checkLine = text(
    ['must not hold control characters or line breaks', (value) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)],
    ['must not be blank', (value) => value === '' || /[^\p{C}\p{Z}]/u.test(value)],
  )
  return (value) => checkText(value) ?? checkLine(value)
}

const checkName = storable(1, 40)
const checkPairValue = storable(0, 500)
const maxPairs = 20

function checkMetadata(value: unknown): string | readonly MemberError[] {
  if (!isObject(value)) return 'must be an object'
  const pairs = Object.entries(value)
  const errors = pairs.flatMap(([name, member]): MemberError[] => {
    const wrong = checkName(name)
    const detail = wrong === undefined ? checkPairValue(member) : `has a name that ${wrong}`
    return detail === undefined ? [] : [[detail, name]]
  })
  return pairs.length > maxPairs ? [...errors, [`must have at most ${maxPairs} members`]] : errors
}

/** A body whose members are valid; an absent one may also be `null`. */
interface SignupBody {
  readonly email: string
  readonly name: string
  readonly company?: string | null
  readonly country?: string | null
  readonly plan?: string | null
  readonly profile?: string | null
  readonly locale?: string | null
  readonly message?: string | null
  readonly consent_at?: string | null
  readonly metadata?: Readonly<Record<string, string>> | null
}

export const signupBody: BodyDef<SignupInput> = {
  members: {
    // The policy has checked it.
    partner: () => undefined,
    email: required(text(
      ['must have at most 254 characters', (value) => value.length <= 254],
      ['must be an e-mail address', (value) => EMAIL_PATTERN.test(value)],
      ['must not hold a key', isStorable],
    )),
    name: required(line(1, 200)),
    company: optional(line(0, 200)),
    country: optional(text([COUNTRY_MESSAGE, (code) => parseCountryCode(code) !== undefined])),
    plan: optional(text([PLAN_MESSAGE, (slug) => SLUG_PATTERN.test(slug)])),
    profile: optional(text([PROFILE_MESSAGE, (slug) => SLUG_PATTERN.test(slug)])),
    locale: optional(text([LOCALE_MESSAGE, isLocale])),
    message: optional(storable(0, 2000)),
    consent_at: optional(text([
      'must be an RFC 3339 date and time with an offset',
      (instant) => parseInstant(instant) !== undefined,
    ])),
    metadata: optional(checkMetadata),
  },
  toValue(body) {
    const { email, name, company, country, plan, profile, locale, message, consent_at, metadata } =
      body as unknown as SignupBody
    return {
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
    }
  },
}

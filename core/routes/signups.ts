import {
  check,
  custom,
  type GenericSchema,
  maxCodePoints,
  maxLength,
  metadata as described,
  minCodePoints,
  nullish,
  pipe,
  rawTransform,
  regex,
  rfcEmail,
  safeParse,
  strictObject,
  string,
  transform,
} from 'valibot'
import { isRecord } from '../content/fields.ts'
import { COUNTRY_CODE_INPUT, isLocale, LOCALE_PATTERN, parseCountryCode } from '../content/iso-codes.ts'
import type { JsonObject } from '../http/body.ts'
import type { HandlerResult } from '../http/message.ts'
import { type InputError, Problem } from '../http/problem.ts'
import { containsKey } from '../http/redact.ts'
import { drawId } from '../lib/ids.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { MS_PER_DAY, parseInstant, rfc3339 } from '../lib/time.ts'
import type { Grant } from '../policy/decide.ts'
import type { Signup, SignupInput } from '../ports/signups.ts'
import { partnerSchema } from '../schemas/fields.ts'
import { canonicalJson } from '../signups/idempotency.ts'
import type { HandlerContext } from './context.ts'
import { defineRoute, type Route } from './route.ts'

/** How long an idempotency key is remembered. */
const idempotencyMs = MS_PER_DAY

/**
 * PostgreSQL cannot keep NUL, no encoding of UTF-8 has lone surrogates, and of a key nothing is kept but its digest
 * and its last characters (contract, section 6).
 */
function isStorable(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed() && !containsKey(value)
}

function text(min: number, max: number, description = '', example = '') {
  const length = `must have ${min}–${max} characters`
  return pipe(
    string('must be text'),
    minCodePoints(min, length),
    maxCodePoints(max, length),
    check(isStorable, 'must be well-formed Unicode without NUL, and must not hold a key'),
    described({ description, examples: [example] }),
  )
}

/** Text on one line, of which something can be seen: one that may be empty is so, or not blank. */
function line(min: number, max: number, description: string, example: string) {
  return pipe(
    text(min, max, description, example),
    check(
      (value) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value),
      'must not hold control characters or line breaks',
    ),
    check((value) => value === '' || /[^\p{C}\p{Z}]/u.test(value), 'must not be blank'),
  )
}

function checkedText(
  isValid: (value: string) => boolean,
  message: string,
  description: Readonly<Record<string, unknown>>,
) {
  return pipe(string('must be text'), check(isValid, message), described(description))
}

function slugOf(what: string, message: string, example: string) {
  const description = { description: `Slug of the ${what}.`, maxLength: 80, examples: [example] }
  return pipe(string('must be text'), regex(SLUG_PATTERN, message), described(description))
}

const maxMetadata = 20
const metadataName = text(1, 40)
const metadataValue = text(0, 500)

/** valibot's own record passes over members with names such as `constructor`. */
const metadata = pipe(
  custom<Readonly<Record<string, unknown>>>(isRecord, 'must be an object'),
  described({
    description: 'What else the form knows: names of 1–40, values of up to 500 characters.',
    type: 'object',
    maxProperties: maxMetadata,
    propertyNames: { type: 'string', minLength: 1, maxLength: 40 },
    additionalProperties: { type: 'string', maxLength: 500 },
    examples: [{ campaign: 'spring' }],
  }),
  rawTransform<Readonly<Record<string, unknown>>, Readonly<Record<string, string>>>(
    ({ dataset: { value }, addIssue }) => {
      const pairs = Object.entries(value)
      for (const [name, member] of pairs) {
        const [wrong] = safeParse(metadataName, name).issues ?? []
        const [issue] = safeParse(metadataValue, member).issues ?? []
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

const planMessage = 'must be a plan that exists'
// Said of a profile that is hidden from the partner, too: which of the two it is, nobody is told.
const profileMessage = 'must be a profile that exists'

const body: GenericSchema<unknown, SignupInput> = pipe(
  strictObject({
    partner: partnerSchema,
    email: pipe(
      string('must be text'),
      maxLength(254, 'must have at most 254 characters'),
      rfcEmail('must be an e-mail address'),
      check(isStorable, 'must not hold a key'),
      described({ description: 'Address for mail.', examples: ['jane@example.com'] }),
    ),
    name: line(1, 200, 'Who signs up: one line, not blank.', 'Jane Doe'),
    company: nullish(line(0, 200, 'For whom: one line, empty or not blank.', 'Example Ltd')),
    country: nullish(
      checkedText(
        (code) => parseCountryCode(code) !== undefined,
        'must be an assigned ISO 3166-1 alpha-2 code',
        {
          description: 'ISO 3166-1 alpha-2 or `XK`, in either case.',
          ...COUNTRY_CODE_INPUT,
        },
      ),
    ),
    plan: nullish(slugOf('plan', planMessage, 'starter')),
    profile: nullish(slugOf('profile', profileMessage, 'nordlichter-frachtkontor')),
    locale: nullish(
      checkedText(isLocale, 'must be a BCP 47 language tag', {
        description: 'The language of the form, BCP 47.',
        pattern: LOCALE_PATTERN,
        maxLength: 255,
        examples: ['en-GB'],
      }),
    ),
    message: nullish(text(0, 2000, 'What they wrote.', 'Please call me back.')),
    consent_at: nullish(
      checkedText(
        (instant) => parseInstant(instant) !== undefined,
        'must be an RFC 3339 date and time with an offset',
        {
          description: 'When they agreed to be contacted.',
          format: 'date-time',
          maxLength: 64,
          examples: ['2026-11-20T09:00:00Z'],
        },
      ),
    ),
    metadata: nullish(metadata),
  }),
  transform(({ email, name, company, country, plan, profile, locale, message, consent_at, metadata }) => ({
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

/** A plan or profile that is not there; what is no slug, the schema has refused already. */
function checkReferences(
  { plan, profile }: JsonObject,
  grant: Grant,
  ports: HandlerContext,
): MaybePromise<readonly InputError[]> {
  const planned = isSlug(plan)
    ? andThen(ports.catalog.listPlans(), (plans) => plans.some(({ slug }) => slug === plan))
    : true
  const found = isSlug(profile)
    ? andThen(ports.directory.findProfile(grant.partner.slug, profile, grant.now), (one) => one !== undefined)
    : true
  return all<[boolean, boolean], readonly InputError[]>([planned, found], ([hasPlan, hasProfile]) => [
    ...(hasPlan ? [] : [{ pointer: '/plan', detail: planMessage }]),
    ...(hasProfile ? [] : [{ pointer: '/profile', detail: profileMessage }]),
  ])
}

function isSlug(value: unknown): value is string {
  return typeof value === 'string' && SLUG_PATTERN.test(value)
}

function signupReceipt(id: string, createdAt: number, fields: readonly string[]): HandlerResult {
  return { data: { id, status: 'received', created_at: rfc3339(createdAt) }, headers: fields }
}

export const signups: Route = defineRoute({
  name: 'sign-up',
  access: 'key',
  method: 'POST',
  path: '/partner/signups',
  scope: 'create:partner-signups',
  summary: 'Partner signup',
  description:
    'Hands over what a signup form holds. A 201 says that it is kept. Send an `Idempotency-Key`, and it is safe to ' +
    'repeat.',
  parameters: {},
  takesIdempotencyKey: true,
  body,
  checkReferences,
  status: 201,
  limits: ['key', 'signup'],
  cacheBy: 'none',
  handle({ body, rawBody: sent, idempotencyKey }, { partner, key, now }, ports) {
    const signup: Signup = {
      ...body,
      id: drawId('sgn_'),
      partner: partner.slug,
      keyId: key.id,
      environment: key.environment,
      createdAt: now,
    }
    const claim = idempotencyKey === undefined ? undefined : {
      key: idempotencyKey,
      fingerprint: ports.sha256(canonicalJson(sent)),
      expiresAt: now + idempotencyMs,
    }
    return andThen(ports.signups.createSignup(signup, claim), (result) => {
      switch (result.outcome) {
        case 'created':
          return signupReceipt(signup.id, signup.createdAt, [])
        case 'replayed':
          return signupReceipt(result.id, result.createdAt, ['Idempotent-Replayed', 'true'])
        case 'mismatch':
          throw new Problem('idempotency_mismatch')
        case 'conflict':
          throw new Problem('idempotency_conflict')
      }
    })
  },
})

import type { JsonObject } from '../http/body.ts'
import type { HandlerResult } from '../http/message.ts'
import { type InputError, Problem } from '../http/problem.ts'
import { drawId } from '../lib/ids.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../content/scalars.ts'
import { parseInstant, rfc3339 } from '../lib/time.ts'
import type { Grant } from '../policy/decide.ts'
import type { Signup } from '../ports/signups.ts'
import * as input from '../schemas/input-schemas.ts'
import { createReservation } from '../signups/idempotency.ts'
import type { SignupReceipt } from '../wire.ts'
import { definePost, type HandlerContext } from './route.ts'

const planMessage = 'must be a plan that exists'
/** The message for an unknown profile, and for one that is hidden from the partner, which it must not reveal. */
const profileMessage = 'must be a profile that exists'

const members = {
  partner: input.partner,
  email: input.email({ description: 'E-mail address.', examples: ['jane@example.com'] }),
  name: input.line(1, 200, {
    description: 'Name of the person: one line, not blank.',
    examples: ['Jane Doe'],
  }),
  company: input.optional(input.line(0, 200, {
    description: 'Name of the company: one line, empty or not blank.',
    examples: ['Example Ltd'],
  })),
  country: input.optional(input.country({ description: 'ISO 3166-1 alpha-2 or `XK`, in either case.' })),
  plan: input.optional(
    input.slug(planMessage, { description: 'Slug of the plan.', examples: ['starter'] }),
  ),
  profile: input.optional(
    input.slug(profileMessage, {
      description: 'Slug of the profile.',
      examples: ['nordlichter-frachtkontor'],
    }),
  ),
  locale: input.optional(input.locale('Language of the form, BCP 47.', 'en-GB')),
  message: input.optional(
    input.storable(0, 2000, { description: 'Free text.', examples: ['Please call me back.'] }),
  ),
  consent_at: input.optional(input.form(
    'must be an RFC 3339 date and time with an offset',
    {
      description: 'When the person agreed to be contacted.',
      format: 'date-time',
      maxLength: 64,
      examples: ['2026-11-20T09:00:00Z'],
    },
    parseInstant,
  )),
  metadata: input.metadata,
}

/** Looks for a plan and a profile that do not exist; the schemas refuse anything but slugs. */
function findDanglingReferences(
  { plan, profile }: JsonObject,
  grant: Grant,
  context: HandlerContext,
): MaybePromise<readonly InputError[]> {
  const planned = isSlug(plan)
    ? andThen(context.catalog.listPlans(), (plans) => plans.some(({ slug }) => slug === plan))
    : true
  const found = isSlug(profile)
    ? andThen(
      context.directory.findProfile(grant.partner.slug, profile, grant.now),
      (one) => one !== undefined,
    )
    : true
  return all([planned, found], ([hasPlan, hasProfile]) => [
    ...(hasPlan ? [] : [{ pointer: '/plan', detail: planMessage }]),
    ...(hasProfile ? [] : [{ pointer: '/profile', detail: profileMessage }]),
  ])
}

function isSlug(value: unknown): value is string {
  return typeof value === 'string' && SLUG_PATTERN.test(value)
}

function receipt(id: string, createdAt: number, headers: readonly string[]): HandlerResult {
  const data: SignupReceipt = { id, status: 'received', created_at: rfc3339(createdAt) }
  return { data, headers }
}

export const signups = definePost({
  name: 'sign-up',
  path: '/partner/signups',
  scope: 'create:partner-signups',
  summary: 'Create a signup',
  takesIdempotencyKey: true,
  body: members,
  status: 201,
  limits: ['key', 'signup'],
  check({ rawBody }, errors, grant, context) {
    return andThen(findDanglingReferences(rawBody, grant, context), (danglingReferences) => {
      // Those of a body that is valid otherwise are left to the handler.
      if (errors.length === 0) return danglingReferences
      throw new Problem('invalid_body', { errors: [...errors, ...danglingReferences] })
    })
  },
  handle(
    { body, rawBody, checked: danglingReferences, idempotencyKey },
    { partner, key, now },
    context,
  ) {
    const { consent_at: consentAt, ...form } = body
    const signup: Signup = {
      ...form,
      consentAt,
      id: drawId('sgn_'),
      partner: partner.slug,
      keyId: key.id,
      environment: key.environment,
      createdAt: now,
    }
    const reservation = idempotencyKey === undefined
      ? undefined
      : createReservation(idempotencyKey, rawBody, now, context.sha256)
    // Only a first attempt needs what it refers to.
    const isAdmitted = danglingReferences.length === 0 ||
      reservation !== undefined && context.signups.isReserved(signup, reservation)
    return andThen(isAdmitted, (admitted) => {
      if (!admitted) throw new Problem('invalid_body', { errors: danglingReferences })
      return andThen(context.signups.createSignup(signup, reservation), (result) => {
        if (result.outcome === 'created') return receipt(signup.id, signup.createdAt, [])
        if (result.outcome !== 'replayed') throw new Problem(`idempotency_${result.outcome}`)
        return receipt(result.id, result.createdAt, ['Idempotent-Replayed', 'true'])
      })
    })
  },
})

/** The endpoints that change keys. Few requests are for one: their code is loaded with the first. */
import { MAX_OWN_OVERLAP_SECONDS } from '../keys/lifecycle.ts'
import * as input from '../schemas/input-schemas.ts'
import { definePost, type OpenRoute } from './route.ts'

const defaultOverlapSeconds = 86_400
const overlap = input.integer(0, MAX_OWN_OVERLAP_SECONDS, {
  description: 'Seconds for which the key of the request still works.',
  examples: [defaultOverlapSeconds],
})

export const rotateKey = definePost({
  name: 'rotate-key',
  path: '/developer/rotate-key',
  selfService: 'rotate',
  summary: 'Rotate the key',
  problems: ['rotation_conflict'],
  body: { partner: input.partner, overlap_seconds: input.optional(overlap) },
  status: 201,
  limits: ['rotate'],
  async handle({ body }, grant, context) {
    const { rotateOwnKey } = await import('./key-self-service.ts')
    return await rotateOwnKey(body.overlap_seconds ?? defaultOverlapSeconds, grant, context)
  },
})

export const revokeKey = definePost({
  name: 'revoke-key',
  path: '/developer/revoke-key',
  selfService: 'revoke',
  summary: 'Revoke the key',
  body: { partner: input.partner },
  limits: ['key'],
  skipsQuotas: true,
  async handle(_, grant, context) {
    const { revokeOwnKey } = await import('./key-self-service.ts')
    return await revokeOwnKey(grant, context)
  },
})

const claimLink = {
  access: 'open',
  path: '/claim/:token',
  endsWithSecret: true,
  mediaTypes: ['application/json', 'text/html'],
  problems: ['claim_not_found', 'claim_spent', 'rate_limited', 'store_unavailable', 'overloaded'],
} as const

export const showClaimRoute: OpenRoute = {
  ...claimLink,
  name: 'show-claim',
  method: 'GET',
  summary: 'Open a one-time link',
  async handle(context, request) {
    const { openLink } = await import('./claim-links.ts')
    return await openLink(context, request)
  },
}

export const useClaimRoute: OpenRoute = {
  ...claimLink,
  name: 'use-claim',
  method: 'POST',
  status: 201,
  summary: 'Get the key of a one-time link',
  async handle(context, request) {
    const { useLink } = await import('./claim-links.ts')
    return await useLink(context, request)
  },
}

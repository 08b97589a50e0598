/**
 * A typed client for partners' servers: one method for each endpoint and one for those that an operator adds,
 * problems as errors, paged lists as iterables, and safe retries; and the verification of webhooks.
 *
 * @module
 */
export type { Page } from '../../core/http/message.ts'
export type { ProblemCode } from '../../core/http/problem.ts'
export type { WebAbortSignal, WebRequest, WebResponse, WebUrl } from '../../core/lib/web-globals.ts'
export type { Environment, Module, PolicyName, Scope } from '../../core/model.ts'
export type { ActivityType } from '../../core/ports/reports.ts'
export type * from '../../core/wire.ts'
export * from './cache.ts'
export * from './client.ts'
export { PartnerApiError, PartnerProblem, ServiceUnreachableError } from './errors.ts'
export type * from './endpoints.ts'
export type { RateLimit, ResponseInfo, WebHeaders, WithResponse } from './response.ts'
export type { Attempt, Hooks } from './transport.ts'
export * from './webhooks.ts'

/**
 * A client for partners, for their servers: every endpoint, typed; problems as errors; lists read to their end; requests
 * sent again where that is safe.
 *
 * @module
 */
export { createPartnerClient } from './client.ts'
export type { CallOptions, PartnerClient, PartnerClientOptions, Rows, SignUpOptions } from './client.ts'
export type { WebAbortSignal, WebRequest, WebResponse, WebUrl } from '../../core/http/web.ts'
export { NoAnswer, type NoAnswerOptions, PartnerProblem } from './partner-problem.ts'
export type * from '../../core/wire.ts'
export type * from './queries.ts'

/**
 * A client for partners, for their servers: every endpoint, typed; problems as errors; lists read to their end; requests
 * sent again where that is safe.
 *
 * @module
 */
export { createPartnerClient } from './client.ts'
export type { Page } from '../../core/http/message.ts'
export type { WebAbortSignal, WebRequest, WebResponse, WebUrl } from '../../core/lib/web.ts'
export { PartnerProblem, ServiceUnreachableError, type ServiceUnreachableErrorOptions } from './errors.ts'
export type * from '../../core/wire.ts'
export type * from './client.ts'

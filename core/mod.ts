/**
 * A partner API that you host yourself: keyed, scoped, server-side access to public content.
 *
 * @module
 */
export { createPartnerApi } from './api.ts'
export type { PartnerApi, PartnerApiOptions, PartnerApiPorts } from './api.ts'
export type { Answer, Exchange } from './http/exchange.ts'
export type { LogEvent } from './log.ts'
export type * from './model.ts'
export type * from './ports.ts'

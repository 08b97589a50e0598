/**
 * A partner API that you host yourself: keyed, scoped, server-side access to public content.
 *
 * @module
 */
export { createPartnerApi } from './api.ts'
export type { PartnerApi, PartnerApiOptions, PartnerApiPorts } from './api.ts'
export type { RequestInfo } from './http/fetch.ts'
export type { Content } from './http/content.ts'
export type { Answer, Exchange } from './http/exchange.ts'
export { Problem } from './http/problem.ts'
export type { InputError, ProblemCode, ProblemMembers } from './http/problem.ts'
export type { LogEvent } from './log.ts'
export type { Endpoint } from './routes/route.ts'
export type * from './model.ts'
export type * from './ports.ts'

// What administers a store, for embedders that have no command line.
export { createKeyAdministration } from './admin/keys.ts'
export type { IssuedKey, KeyAdministration, NewKey } from './admin/keys.ts'
export type { LimitChange } from './admin/limits.ts'
export type { Operator } from './admin/operator.ts'
export { createPartnerAdministration } from './admin/partners.ts'
export type { NewPartner, PartnerAdministration, PartnerUpdate } from './admin/partners.ts'
export { Refusal } from './admin/refusal.ts'
export type { RefusalCode } from './admin/refusal.ts'
export type { Rotation } from './admin/rotation.ts'
export { importContent } from './content/import.ts'
export type { ImportOutcome } from './content/import.ts'
export type { LineError, LineErrors } from './content/lines.ts'

// What a directory or a store of one's own has to agree with.
export { compareCodePoints, fold, foldWords } from './content/fold.ts'
export type { Change } from './admin/changes.ts'
export type { AuditedType, AuditEntry, AuditHead, Stamp } from './audit/entry.ts'
export { CONTENT_KINDS } from './content/records.ts'
export type { BannerRecord, ContentKind, ContentRecords, ProfileRecord } from './content/records.ts'
export { MODULE_NAMES } from './policy/modules.ts'
export type { Module } from './policy/modules.ts'
export { SCOPES } from './policy/scopes.ts'
export type { Scope } from './policy/scopes.ts'
export { ACTIVITY_TYPES } from './reports/activity.ts'
export type { Activity, ActivityQuery, ActivityType } from './reports/activity.ts'
export type { SummaryCounts } from './reports/summary.ts'
export type { UsageCount } from './reports/usage.ts'
export type { IdempotencyClaim, Signup, SignupInput, SignupOutcome } from './signups/signup.ts'

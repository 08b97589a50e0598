/**
 * A self-hosted partner API: keyed, scoped, server-side access to public content.
 *
 * @module
 */
export { createPartnerApi } from './api.ts'
export type { PartnerApi, PartnerApiPorts } from './api.ts'
export type { PeerInfo } from './http/fetch.ts'
export type { BodyContent, HttpRequest, HttpResponse } from './http/message.ts'
export { Problem, PROBLEMS } from './http/problem.ts'
export type { InputError, ProblemCode, ProblemMembers } from './http/problem.ts'
export type { MaybePromise } from './lib/promise.ts'
export type { WebRequest, WebResponse } from './lib/options.ts'
export type { LogEvent } from './log.ts'
export { MODULE_NAMES, MODULES, SCOPES } from './model.ts'
export type * from './model.ts'
export type { DeploymentInfo } from './openapi/model.ts'
export type { Endpoint } from './routes/route.ts'
export type { PartnerApiOptions } from './settings.ts'

// Administration, for embedders without the command line.
export type { Operator } from './admin/apply.ts'
export { importKeys } from './admin/import-keys.ts'
export type { KeyImportOptions, KeyImportOutcome, KeyImportReport } from './admin/import-keys.ts'
export { createKeyAdministration } from './admin/keys.ts'
export type { IssuedKey, KeyAdministration, KeyUpdate, NewKey, RotationOptions } from './admin/keys.ts'
export { createPartnerAdministration } from './admin/partners.ts'
export type { NewPartner, PartnerAdministration, PartnerUpdate } from './admin/partners.ts'
export { AdminError } from './admin/validate.ts'
export type { AdminErrorCode, LimitChange, Remedy } from './admin/validate.ts'
export { importContent } from './content/lines.ts'
export type { LineError, LineErrors } from './content/line-reader.ts'
export type { ImportOutcome } from './content/lines.ts'
export { awaitReceipt } from './replicas/receipt.ts'
export type { Receipt, ReplicaReceipt } from './replicas/receipt.ts'

// Interfaces of custom directories and stores.
export { checkDirectory, directoryOf } from './content/custom-directory.ts'
export type { DirectoryRow } from './content/custom-directory.ts'
export { compareCodePoints, fold, foldWords } from './lib/text.ts'
export type { ClockReading } from './lib/clock.ts'
export type { AuditEntry, AuditEventType, AuditHead, AuditLog } from './ports/audit.ts'
export type * from './ports/changes.ts'
export { CONTENT_KINDS } from './ports/content.ts'
export type {
  BannerRecord,
  ContentAdministration,
  ContentKind,
  ContentRecords,
  ImportOptions,
  ImportReport,
  ProfileRecord,
} from './ports/content.ts'
export type * from './ports/directory.ts'
export type * from './ports/facts.ts'
export type { CompletedRequest, Measurements, Observer } from './ports/observer.ts'
export type * from './ports/quotas.ts'
export type * from './ports/replicas.ts'
export { ACTIVITY_TYPES } from './ports/reports.ts'
export type * from './ports/reports.ts'
export type * from './ports/signups.ts'
export type { Store, StoreSettings } from './ports/store.ts'
export { WEBHOOK_EVENT_TYPES } from './ports/webhooks.ts'
export type {
  Delivery,
  DeliveryResult,
  Webhook,
  WebhookChangeType,
  WebhookEvent,
  WebhookEventType,
  WebhookStore,
} from './ports/webhooks.ts'

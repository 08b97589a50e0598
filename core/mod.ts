/**
 * A self-hosted partner API: keyed, scoped, server-side access to public content.
 *
 * @module
 */
export { createPartnerApi, type PartnerApi } from './api.ts'
export type { PartnerApiPorts } from './timed-ports.ts'
export type { PeerInfo } from './http/fetch.ts'
export type { BodyContent, HttpRequest, HttpResponse, Page } from './http/message.ts'
export { type InputError, Problem, type ProblemCode, type ProblemMembers, PROBLEMS } from './http/problem.ts'
export type { MaybePromise } from './lib/promise.ts'
export type { WebAbortSignal, WebRequest, WebResponse } from './lib/web-globals.ts'
export type { LogEvent } from './log.ts'
export { KEY_STATES, MODULE_NAMES, MODULES, SCOPES } from './model.ts'
export type {
  Banner,
  BuiltInModule,
  BuiltInScope,
  EndpointMethod,
  EndpointScope,
  Environment,
  Industry,
  Key,
  KeyDetails,
  KeyFacts,
  KeyPolicyName,
  KeyState,
  Limit,
  LimitOverrides,
  Module,
  ModuleDefinition,
  Modules,
  MonthLimit,
  Partner,
  PartnerDetails,
  PartnerPolicyName,
  PartnerQuotaName,
  Plan,
  PolicyName,
  Profile,
  ProfileCard,
  Scope,
  SelfService,
  ServicePolicyName,
} from './model.ts'
export type { DeploymentInfo } from './openapi/model.ts'
export type { Protect, ProtectedHandler, ProtectedRoute } from './protect.ts'
export {
  defineEndpoint,
  type EndpointData,
  type EndpointDefinition,
  type EndpointInput,
  type EndpointList,
  type EndpointSchemas,
  type EndpointValues,
  type OwnEndpoint,
  type PathParameters,
  type SendableSchemas,
  type TakenType,
} from './routes/host-endpoints.ts'
export type { EndpointResult } from './routes/host-results.ts'
export type { UnsendableType } from './routes/host-schemas.ts'
export type { EndpointGrant } from './routes/host-code.ts'
export type { EndpointSchema } from './schemas/input-schemas.ts'
export type { Endpoint } from './routes/route.ts'
export type { PartnerApiOptions } from './settings.ts'

// Administration, for embedders without the command line.
export type { ClaimRequest } from './admin/claim-request.ts'
export { type ClaimStore, createClaim, revokeClaim } from './admin/claims.ts'
export type { Operator } from './admin/apply.ts'
export {
  importKeys,
  type KeyImportOptions,
  type KeyImportOutcome,
  type KeyImportReport,
} from './admin/import-keys.ts'
export { createKeyAdministration, type KeyAdministration, type KeyUpdate } from './admin/keys.ts'
export type { IssuedKey, KeyStore, NewKey, RotatedKey } from './admin/key-plans.ts'
export type { RotationOptions } from './admin/rotation.ts'
export type { ServiceLimits } from './admin/successor.ts'
export {
  createPartnerAdministration,
  type NewPartner,
  type PartnerAdministration,
  type PartnerUpdate,
} from './admin/partners.ts'
export { createModuleAdministration, type ModuleAdministration } from './admin/modules.ts'
export { AdminError, type AdminErrorCode } from './admin/error.ts'
export type { Remedy } from './lib/remedy.ts'
export type { DetailsChange, LimitChange } from './admin/validate.ts'
export { importContent, type ImportOutcome } from './content/lines.ts'
export type { LineError, LineErrors } from './content/line-reader.ts'
export { awaitReceipt, type Receipt, type ReplicaReceipt } from './replicas.ts'

// Interfaces of custom directories and stores.
export { checkDirectory, directoryOf, type DirectoryRow } from './content/custom-directory.ts'
export { fold, foldWords } from './lib/text.ts'
export type { ClockReading, StoreClock } from './lib/clock.ts'
export type { AuditEntry, AuditEventType, AuditHead, AuditLog } from './ports/audit.ts'
export type {
  Administration,
  AuditContext,
  Change,
  Claim,
  CreationPosition,
  DigestScheme,
  KeyFilter,
} from './ports/changes.ts'
export {
  type BannerRecord,
  CONTENT_KINDS,
  type ContentAdministration,
  type ContentKind,
  type ContentRecords,
  type ImportOptions,
  type ImportReport,
  type ProfileRecord,
} from './ports/content.ts'
export type { Catalog, Directory, ProfilePosition, ProfileQuery, ProfileSort } from './ports/directory.ts'
export type { FactSource, Revision } from './ports/facts.ts'
export type { CompletedRequest, Measurements, ObservedService, Observer } from './ports/observer.ts'
export type { LeaseReport, LeaseRequest, QuotaLease, QuotaReturn, QuotaStore } from './ports/quotas.ts'
export type { Replica, ReplicaProgress, ReplicaRegistration, ReplicaRegistry } from './ports/replicas.ts'
export { ACTIVITY_TYPES } from './ports/reports.ts'
export type {
  Activity,
  ActivityQuery,
  ActivityType,
  KeyUsage,
  PartnerDay,
  ProblemFilter,
  RecordedProblem,
  ReportPosition,
  Reports,
  RequestCounts,
  SummaryCounts,
  UsageCount,
} from './ports/reports.ts'
export type {
  IdempotencyReservation,
  Signup,
  SignupDestination,
  SignupInput,
  SignupOutcome,
  SignupStore,
} from './ports/signups.ts'
export type { AdministeredStore, RecordedEndpoint, Store, StoreSettings } from './ports/store.ts'
export { StoreError, type StoreErrorCode } from './ports/store-error.ts'
export {
  type Delivery,
  type DeliveryResult,
  type PrunedDelivery,
  type Webhook,
  WEBHOOK_EVENT_TYPES,
  type WebhookChangeType,
  type WebhookEdit,
  type WebhookEvent,
  type WebhookEventType,
  type WebhookStore,
} from './ports/webhooks.ts'

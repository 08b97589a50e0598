/** The bodies of all responses, for the documents and for clients that check a deployment; loaded when needed. */
import * as v from 'valibot'
import { COUNTRY_CODES } from '../content/iso-codes.ts'
import type { Page } from '../http/message.ts'
import { DEFAULT_PROBLEM_BASE, PROBLEM_CODES, PROBLEMS } from '../http/problem.ts'
import { MAX_QUOTA_SECONDS, POLICY_NAMES } from '../limits/policies.ts'
import {
  API_VERSION,
  ENDPOINT_METHODS,
  type EndpointName,
  MAX_OWN_MODULES,
  MODULE_NAMES,
  MODULE_PATTERN,
  SCOPE_PATTERN,
} from '../model.ts'
import { MAX_STALE_IF_ERROR_SECONDS } from '../cache/revision-cache.ts'
import type { ActivityType } from '../ports/reports.ts'
import type * as wire from '../wire.ts'
import {
  bannerSchema,
  cardSchema,
  countriesSchema,
  industriesSchema,
  plansSchema,
  profileSchema,
  widgetSchema,
} from './content.ts'
import * as field from './fields.ts'

const keyId = (description: string, example: string): field.Schema<string> =>
  field.text(description, example, 12, { pattern: '^[0-9A-Za-z]{12}$' })
// Those of an imported key may be unknown, or other characters than ours.
const keyHint: field.Schema<string> = field.text('Last four characters of the key.', '…9xQ2', 5, {
  // The ellipsis by what it is not: patterns are ASCII.
  pattern: '^[^!-~](?:[!-~]{4})?$',
})
/** What identifies an endpoint. */
const endpointPlace = {
  method: field.oneOf('HTTP method.', ENDPOINT_METHODS),
  // As long as the service accepts.
  path: field.text('Path with `{slug}` for a parameter.', '/service/public/profiles', 8192),
}
const scope = (description: string) => field.name(description, 'read:profiles', 47, SCOPE_PATTERN)
const module = (description: string) => field.name(description, 'profiles', 40, MODULE_PATTERN)

export const keySchema = field.named('Key', 'A key without its secret.', {
  id: keyId('Public id of the key: the 12 characters after its prefix.', 'Zt81mK0qWv3B'),
  name: field.text('Name of the key.', 'WordPress plugin', 200),
  environment: field.oneOf('Signups with a test key are stored as tests.', ['live', 'test']),
  hint: keyHint,
  created_at: field.instant('When the key was issued.', '2026-03-01T09:00:00.000Z'),
  expires_at: v.nullable(field.instant('When the key expires.', '2027-03-01T09:00:00.000Z')),
  rotation: v.nullable(field.object('Present while the key is being replaced.', {
    successor_id: keyId('Id of the successor key.', 'b7Yc0PqLs9Xa'),
    retires_at: field.instant('Until when this key still works.', '2026-11-21T09:00:00.000Z'),
  })),
})

const maxModules = MODULE_NAMES.length + MAX_OWN_MODULES

const moduleSchema = v.strictObject({
  module: module('Name of the module.'),
  active: field.flag('Whether the module is active for the partner.', true),
  ready: field.flag('Whether the module works with this key.', true),
  missing_scope: v.nullable(scope('The scope that the key lacks.')),
})

export const verificationSchema: field.Schema<wire.Verification> = field.named(
  'Verification',
  'A key and its permissions.',
  {
    valid: field.described(v.literal(true), 'An invalid key gets a problem instead.'),
    partner: v.strictObject({
      slug: field.slug('Slug of the partner.', 'demo'),
      name: field.text('Display name.', 'Demo partner', 200),
    }),
    key: keySchema,
    scopes: field.list(
      'The scopes that the key holds.',
      maxModules,
      v.strictObject({
        scope: scope('A scope that the key holds.'),
        in_force: field.flag('Whether an active module of the partner needs the scope.', true),
      }),
    ),
    modules: v.pipe(
      field.list('All modules.', maxModules, moduleSchema),
      v.metadata({ examples: [[{ module: 'profiles', active: true, ready: true, missing_scope: null }]] }),
    ),
    endpoints: field.list(
      'Every endpoint that needs a scope.',
      100,
      v.strictObject({
        ...endpointPlace,
        scope: scope('The scope that the endpoint needs.'),
        allowed: field.flag('Whether this key may use the endpoint now.', true),
      }),
    ),
    limits: field.list(
      'The active rate limit policies.',
      POLICY_NAMES.length,
      v.strictObject({
        policy: field.oneOf('Name of the policy.', POLICY_NAMES, 'key'),
        quota: field.count('Requests per window.', 600),
        window_seconds: field.count('Length of the window in seconds.', 60, MAX_QUOTA_SECONDS),
        remaining: field.count('Remaining requests.', 599),
        resets_in_seconds: field.count('Seconds until the quota resets.', 60, MAX_QUOTA_SECONDS),
      }),
    ),
    version: field.text('API version.', API_VERSION, 10, { pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
    checked_at: field.instant('When this was checked.', '2026-11-20T09:00:00.000Z'),
    max_staleness_ms: field.count('Milliseconds within which changes take effect.', 1000, 10_000),
    stale_if_error: v.optional(field.object(
      'Present if the operator lets cached keys work while the store is unavailable: changes may take effect later.',
      {
        seconds: field.count('Additional seconds.', 30, MAX_STALE_IF_ERROR_SECONDS),
        since: v.nullable(field.instant(
          'When the store became unavailable; `null` if it is available.',
          '2026-11-20T09:00:00.000Z',
        )),
      },
    )),
  },
)

const issuedKey = {
  id: keyId('Public id of the key.', 'b7Yc0PqLs9Xa'),
  key: field.text('The whole key, a secret. It is not shown again: store it first.', 'spk_live_…', 200),
  hint: keyHint,
  environment: field.oneOf('Signups with a test key are stored as tests.', ['live', 'test']),
  scopes: field.list('The scopes that the key holds.', maxModules, scope('A scope that the key holds.')),
  expires_at: v.nullable(field.instant('When the key expires.', '2027-03-01T09:00:00.000Z')),
}

const predecessor = (about: string, end: string) =>
  field.object(about, {
    id: keyId('Its public id.', 'Zt81mK0qWv3B'),
    ends_at: field.instant(end, '2026-11-21T09:00:00.000Z'),
  })

const keyRotationSchema: field.Schema<wire.KeyRotation> = field.named(
  'KeyRotation',
  'The successor of a key.',
  {
    ...issuedKey,
    predecessor: predecessor('The key of the request.', 'Until when it still works.'),
  },
)

const claimOfferSchema: field.Schema<wire.ClaimOffer> = field.named(
  'ClaimOffer',
  'What a one-time link is for.',
  {
    partner: field.slug('Slug of the partner that gets the key.', 'demo'),
    name: field.text('Name of the key.', 'WordPress plugin', 200),
    expires_at: field.instant('When the link ends.', '2026-11-21T09:00:00.000Z'),
    predecessor: v.nullable(
      predecessor('The key that it replaces.', 'Until when it works if the link is used now.'),
    ),
  },
)

const claimedKeySchema: field.Schema<wire.ClaimedKey> = field.named('ClaimedKey', 'A new key.', {
  ...issuedKey,
  predecessor: v.nullable(predecessor('The key that it replaces.', 'Until when it still works.')),
})

const keyRevocationSchema: field.Schema<wire.KeyRevocation> = field.named('KeyRevocation', 'A revoked key.', {
  id: keyId('Public id of the key.', 'Zt81mK0qWv3B'),
  state: field.described(v.literal('revoked'), 'This is final.'),
  revoked_at: field.instant('When the key was revoked.', '2026-11-20T09:00:00.000Z'),
})

const requestCounts = {
  requests: field.count('Requests with live keys.', 1840),
  errors: field.count('Number of responses with status 400 or above.', 12),
}
const signups = field.count('Signups with live keys.', 9)
const plan = v.nullable(field.slug('Slug of the plan.', 'starter'))
const country = v.nullable(field.country())
const ranking = <T>(max: number, row: field.Schema<T>) => field.list('Largest count first.', max, row)

const reportSummarySchema: field.Schema<wire.ReportSummary> = field.named(
  'ReportSummary',
  'Signups and requests of a period.',
  {
    period: field.object('The period, in UTC.', {
      from: field.day('First day.'),
      to: field.day('Last day.'),
    }),
    signups: v.strictObject({
      total: signups,
      by_plan: ranking(100_000, v.strictObject({ plan, signups })),
      by_country: ranking(COUNTRY_CODES.length + 1, v.strictObject({ country, signups })),
    }),
    requests: v.strictObject({
      total: requestCounts.requests,
      errors: requestCounts.errors,
      by_endpoint: ranking(100, v.strictObject({ ...endpointPlace, ...requestCounts })),
    }),
    daily: field.list(
      'A row for every day of the period.',
      366,
      v.strictObject({ date: field.day('The day, in UTC.'), signups, ...requestCounts }),
    ),
  },
)

/** A row of these types, which have the same subject. */
function activityRow<const T extends readonly ActivityType[], const S extends v.ObjectEntries>(
  types: T,
  subject: S,
) {
  return v.strictObject({
    id: field.text('Id of the activity.', 'act_01J8ZQ4M7X', 200, { pattern: '^act_' }),
    occurred_at: field.instant('When it happened.', '2026-11-20T09:00:00.000Z'),
    type: field.described(v.picklist(types), 'Type of the activity.', { examples: [types[0]] }),
    subject: v.strictObject(subject),
  })
}

const key = { key_id: keyId('Public id of the key.', 'Zt81mK0qWv3B'), hint: keyHint }

const activitySchema: field.Schema<wire.Activity> = v.pipe(
  v.variant('type', [
    activityRow(['signup.created'], {
      signup_id: field.text('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', 80, { pattern: '^sgn_' }),
      email: field.text('Masked.', 'j***@e***.com', 254),
      name: field.text('Initials.', 'J. D.', 200),
      country,
      plan,
    }),
    activityRow(
      ['key.issued', 'key.rotated', 'key.revoked', 'key.disabled', 'key.enabled', 'key.expired'],
      key,
    ),
    activityRow(['scope.granted', 'scope.removed'], {
      ...key,
      scope: scope('The scope.'),
    }),
    activityRow(['module.activated', 'module.deactivated'], {
      module: module('The module.'),
    }),
  ]),
  v.metadata({ title: 'Activity', description: 'An activity. Contains no personal data.' }),
)

const { maxLength, pattern } = field.CURSOR_KEYWORDS
const cursor = 'WyJub3JkbGljaHQiLCJhIl0.5b1c0f9d2e7a4386b0d1f2a3c4e5d6f7'

export const pageSchema: field.Schema<Page> = field.named('Page', 'The position of a page in its list.', {
  limit: field.count('Maximum number of rows.', 20, 100),
  has_more: field.flag('Whether there is another page.', true),
  next_cursor: v.nullable(field.text('The `cursor` of the next page.', cursor, maxLength, { pattern })),
})

const signupReceiptSchema: field.Schema<wire.SignupReceipt> = field.named(
  'SignupReceipt',
  'Confirmation of a signup.',
  {
    id: field.text('Id of the signup.', 'sgn_5K0M2N8P4QRS6TVW7XYZ', 80, { pattern: '^sgn_' }),
    status: field.described(v.literal('received'), 'The signup is stored.'),
    created_at: field.instant('When the signup was received.', '2026-11-20T09:00:00.000Z'),
  },
)

const clockSkew = v.optional(field.integer(
  "Milliseconds by which this server's clock is ahead of the store's. Absent if at most `max_staleness_ms`.",
  3_600_000,
))

const healthSchema = field.described(
  v.union([
    v.strictObject({
      status: field.described(v.literal('ok'), 'Service and store are available.'),
      directory: v.optional(
        field.described(v.literal('unavailable'), "The operator's own source of profiles."),
      ),
      clock_skew_ms: clockSkew,
    }),
    v.strictObject({
      status: field.described(v.literal('stale'), 'The store is unavailable; known keys work.'),
      since: field.instant('When the store last responded.', '2026-11-20T09:00:00.000Z'),
      until: field.instant('Until when cached keys work.', '2026-11-20T09:00:31.000Z'),
      clock_skew_ms: clockSkew,
    }),
  ]),
  'The state of the service. `stale` only occurs if the operator enabled it.',
  { title: 'Health' },
)

const openapiSchema = field.described(
  v.looseObject({
    openapi: v.pipe(v.string(), v.metadata({ pattern: '^3\\.1\\.', maxLength: 10 })),
    info: v.looseObject({}),
    paths: v.looseObject({}),
  }),
  'An OpenAPI 3.1 document.',
  { examples: [{ openapi: '3.1.1', info: { title: 'Partner API', version: API_VERSION }, paths: {} }] },
)

const documentSchema = (description: string, example: string) =>
  field.described(v.string(), description, { maxLength: 4_194_304, examples: [example] })
const markdownSchema = documentSchema('A Markdown document.', '# Partner API')

const anchor = v.pipe(v.string(), v.metadata({ format: 'uri-reference', maxLength: 2048 }))
const catalogSchema = field.described(
  v.object({ linkset: rowsOf(v.looseObject({ anchor }), 100) }),
  'A set of links.',
  {
    examples: [{
      linkset: [{
        anchor: '/service',
        'service-desc': [{ href: '/service/openapi.json', type: 'application/json' }],
      }],
    }],
  },
)

/** What a problem and its record have in common. */
const problemMembers = {
  status: field.described(
    v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599)),
    'Status of the response.',
    { format: 'int32', examples: [401] },
  ),
  code: field.oneOf('Identifies the problem. Codes are never renamed.', PROBLEM_CODES, 'key_missing'),
  detail: field.text('Explains this occurrence.', PROBLEMS.key_missing.detail, 1000),
  request_id: field.text('`X-Request-Id` of the response.', field.EXAMPLE_REQUEST_ID, 80, {
    pattern: field.REQUEST_ID_PATTERN,
  }),
  required_scope: v.optional(scope('The scope that the key lacks.')),
  required_module: v.optional(module('The module to activate.')),
}

const problemRecordSchema: field.Schema<wire.ProblemRecord> = field.named(
  'ProblemRecord',
  'A request that was answered with a problem.',
  {
    at: field.instant('When the request was checked.', '2026-11-20T09:00:00.000Z'),
    ...key,
    method: field.oneOf('HTTP method.', ENDPOINT_METHODS),
    path: field.text('Path of the request, without its query.', '/service/public/profiles', 500),
    ...problemMembers,
  },
)

export const problemSchema: field.Schema<wire.Problem> = field.named(
  'Problem',
  'A problem (RFC 9457). Handle it by `code`; show `detail` to developers.',
  {
    type: field.text('Identifies the code.', `${DEFAULT_PROBLEM_BASE}/key-missing`, 2048, { format: 'uri' }),
    title: field.text('The same for every problem with this code.', 'Key missing', 100),
    ...problemMembers,
    instance: field.text('The path of the request.', '/service/public/profiles', 8192),
    errors: v.optional(field.list(
      'All errors in the parameters or the body.',
      8192,
      v.strictObject({
        parameter: v.optional(field.text('Name of the parameter or header.', 'limit', 8192)),
        pointer: v.optional(
          field.text('Location in the body (RFC 6901).', '/email', 65_536, { pattern: '^(?:\\/.*)?$' }),
        ),
        detail: field.text('What is wrong.', 'is required', 1000),
      }),
    )),
  },
)

const dataOf = (data: v.GenericSchema): v.GenericSchema => v.object({ data })

function rowsOf(row: v.GenericSchema, maxItems: number): v.GenericSchema {
  return v.pipe(v.array(row), v.metadata({ maxItems }))
}

export const RESPONSE_SCHEMAS: Readonly<Record<EndpointName, v.GenericSchema>> = {
  'verify-key': dataOf(verificationSchema),
  problems: v.object({ data: rowsOf(problemRecordSchema, 100), page: pageSchema }),
  'rotate-key': dataOf(keyRotationSchema),
  'revoke-key': dataOf(keyRevocationSchema),
  widget: dataOf(widgetSchema),
  'recent-profiles': dataOf(rowsOf(cardSchema, 50)),
  profiles: v.object({ data: rowsOf(cardSchema, 100), page: pageSchema }),
  profile: dataOf(profileSchema),
  banner: dataOf(bannerSchema),
  countries: dataOf(countriesSchema),
  industries: dataOf(industriesSchema),
  plans: dataOf(plansSchema),
  'report-summary': dataOf(reportSummarySchema),
  'report-activity': v.object({ data: rowsOf(activitySchema, 100), page: pageSchema }),
  'sign-up': dataOf(signupReceiptSchema),
  health: dataOf(healthSchema),
  openapi: openapiSchema,
  docs: documentSchema('An HTML document.', '<!doctype html><title>Partner API</title>'),
  'docs-markdown': markdownSchema,
  'endpoint-markdown': markdownSchema,
  'api-catalog': catalogSchema,
  'show-claim': dataOf(claimOfferSchema),
  'use-claim': dataOf(claimedKeySchema),
}

import * as v from 'valibot'
import { MAX_STALE_IF_ERROR_SECONDS } from '../cache/revision-cache.ts'
import { API_VERSION } from '../http/headers.ts'
import { LIMIT_NAMES, MAX_WINDOW_SECONDS } from '../limits/policies.ts'
import { MODULE_NAMES, SCOPES } from '../policy/modules.ts'
import type { Verification } from '../wire.ts'
import * as field from './fields.ts'

export const keyId = (description: string, example: string): field.Schema<string> =>
  field.text(description, example, 12, { pattern: '^[0-9A-Za-z]{12}$' })
export const keyHint: field.Schema<string> = field.text('Last four characters of the key.', '…9xQ2', 5, {
  pattern: '^…[0-9A-Za-z]{4}$',
})
/** What identifies an endpoint. */
export const endpointPlace = {
  method: field.oneOf('HTTP method.', ['GET', 'POST']),
  path: field.text('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
}
const scope = (description: string) => field.oneOf(description, SCOPES, 'read:profiles')

const keySchema = field.named('Key', 'A key without its secret.', {
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

const moduleSchema = v.strictObject({
  module: field.oneOf('Name of the module.', MODULE_NAMES, 'profiles'),
  active: field.flag('Whether the module is active for the partner.', true),
  ready: field.flag('Whether the module works with this key.', true),
  missing_scope: v.nullable(scope('The scope that the key lacks.')),
})

export const verificationSchema: field.Schema<Verification> = field.named(
  'Verification',
  'A key and its permissions.',
  {
    valid: v.pipe(v.literal(true), v.metadata({ description: 'An invalid key gets a problem instead.' })),
    partner: v.strictObject({
      slug: field.slug('Slug of the partner.', 'demo'),
      name: field.text('Display name.', 'Demo partner', 200),
    }),
    key: keySchema,
    scopes: field.list(
      'The scopes that the key holds.',
      SCOPES.length,
      v.strictObject({
        scope: scope('A scope that the key holds.'),
        in_force: field.flag('Whether an active module of the partner needs the scope.', true),
      }),
    ),
    modules: v.pipe(
      field.list('All modules.', MODULE_NAMES.length, moduleSchema),
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
      LIMIT_NAMES.length,
      v.strictObject({
        policy: field.oneOf('Name of the policy.', LIMIT_NAMES, 'key'),
        quota: field.count('Requests per window.', 600),
        window_seconds: field.count('Length of the window in seconds.', 60, MAX_WINDOW_SECONDS),
        remaining: field.count('Remaining requests.', 599),
        resets_in_seconds: field.count('Seconds until the quota resets.', 60, MAX_WINDOW_SECONDS),
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

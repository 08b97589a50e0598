import { type GenericSchema, literal, metadata, nullable, optional, pipe, strictObject } from 'valibot'
import { MAX_STALE_IF_ERROR_SECONDS } from '../cache/revision-cache.ts'
import { API_VERSION } from '../http/headers.ts'
import { LIMIT_NAMES, MAX_WINDOW_SECONDS } from '../limits/policies.ts'
import { MODULE_NAMES, SCOPES } from '../policy/modules.ts'
import type { Verification } from '../wire.ts'
import {
  booleanSchema,
  countSchema,
  describedObject,
  instantSchema,
  list,
  namedObject,
  oneOf,
  patternSchema,
  slugSchema,
  textSchema,
} from './fields.ts'

const keyIdSchema = (description: string, example: string) =>
  patternSchema(description, example, '^[0-9A-Za-z]{12}$', 12)
const scopeSchema = (description: string) => oneOf(description, SCOPES, 'read:profiles')

const keySchema = namedObject('Key', 'A key without its secret.', {
  id: keyIdSchema('Public id of the key: the 12 characters after its prefix.', 'Zt81mK0qWv3B'),
  name: textSchema('Name of the key.', 'WordPress plugin', 200),
  environment: oneOf('Signups with a test key are stored as tests.', ['live', 'test']),
  hint: patternSchema('Last four characters of the key.', '…9xQ2', '^…[0-9A-Za-z]{4}$', 5),
  created_at: instantSchema('When the key was issued.', '2026-03-01T09:00:00.000Z'),
  expires_at: nullable(instantSchema('When the key expires.', '2027-03-01T09:00:00.000Z')),
  rotation: nullable(describedObject('Present while the key is being replaced.', {
    successor_id: keyIdSchema('Id of the successor key.', 'b7Yc0PqLs9Xa'),
    retires_at: instantSchema('Until when this key still works.', '2026-11-21T09:00:00.000Z'),
  })),
})

const moduleSchema = strictObject({
  module: oneOf('Name of the module.', MODULE_NAMES, 'profiles'),
  active: booleanSchema('Whether the module is active for the partner.', true),
  ready: booleanSchema('Whether the module works with this key.', true),
  missing_scope: nullable(scopeSchema('The scope that the key lacks.')),
})

export const verificationSchema: GenericSchema<unknown, Verification> = namedObject(
  'Verification',
  'A key and its permissions.',
  {
    valid: pipe(literal(true), metadata({ description: 'An invalid key gets a problem instead.' })),
    partner: strictObject({
      slug: slugSchema('Slug of the partner.', 'demo'),
      name: textSchema('Display name.', 'Demo partner', 200),
    }),
    key: keySchema,
    scopes: list(
      'The scopes that the key holds.',
      SCOPES.length,
      strictObject({
        scope: scopeSchema('A scope that the key holds.'),
        in_force: booleanSchema('Whether an active module of the partner needs the scope.', true),
      }),
    ),
    modules: pipe(
      list('All modules.', MODULE_NAMES.length, moduleSchema),
      metadata({ examples: [[{ module: 'profiles', active: true, ready: true, missing_scope: null }]] }),
    ),
    endpoints: list(
      'Every endpoint that needs a scope.',
      100,
      strictObject({
        method: oneOf('HTTP method.', ['GET', 'POST']),
        path: textSchema('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
        scope: scopeSchema('The scope that the endpoint needs.'),
        allowed: booleanSchema('Whether this key may use the endpoint now.', true),
      }),
    ),
    limits: list(
      'The active rate limit policies.',
      LIMIT_NAMES.length,
      strictObject({
        policy: oneOf('Name of the policy.', LIMIT_NAMES, 'key'),
        quota: countSchema('Requests per window.', 600),
        window_seconds: countSchema('Length of the window in seconds.', 60, MAX_WINDOW_SECONDS),
        remaining: countSchema('Remaining requests.', 599),
        resets_in_seconds: countSchema('Seconds until the quota resets.', 60, MAX_WINDOW_SECONDS),
      }),
    ),
    version: patternSchema('API version.', API_VERSION, '^\\d{4}-\\d{2}-\\d{2}$', 10),
    checked_at: instantSchema('When this was checked.', '2026-11-20T09:00:00.000Z'),
    max_staleness_ms: countSchema('Milliseconds within which changes take effect.', 1000, 10_000),
    stale_if_error: optional(describedObject(
      'Present if the operator lets cached keys work while the store is unavailable: changes may take effect later.',
      {
        seconds: countSchema('Additional seconds.', 30, MAX_STALE_IF_ERROR_SECONDS),
        since: nullable(
          instantSchema(
            'When the store became unavailable; `null` if it is available.',
            '2026-11-20T09:00:00.000Z',
          ),
        ),
      },
    )),
  },
)

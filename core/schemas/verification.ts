import {
  array,
  type GenericSchema,
  literal,
  metadata,
  nullable,
  optional,
  picklist,
  pipe,
  strictObject,
} from 'valibot'
import { MAX_STALE_IF_ERROR_SECONDS } from '../cache/revision-cache.ts'
import { API_VERSION } from '../http/headers.ts'
import { LIMIT_NAMES, MAX_WINDOW_SECONDS } from '../limits/policies.ts'
import { MODULE_NAMES, SCOPES } from '../policy/modules.ts'
import type { Verification } from '../wire.ts'
import { booleanSchema, countSchema, instantSchema, patternSchema, slugSchema, textSchema } from './fields.ts'

const keyIdSchema = (description: string, example: string) =>
  patternSchema(description, example, '^[0-9A-Za-z]{12}$', 12)

function oneOf<const T extends readonly string[]>(
  names: T,
  description: string,
  example: T[number],
): GenericSchema<unknown, T[number]> {
  return pipe(picklist(names), metadata({ description, examples: [example] }))
}

/** What a key is and what it may do. */
export const verificationSchema: GenericSchema<unknown, Verification> = pipe(
  strictObject({
    valid: pipe(literal(true), metadata({ description: 'A key that is not valid gets a problem instead.' })),
    partner: strictObject({
      slug: slugSchema('What the partner is addressed by.', 'demo'),
      name: textSchema('Name to show.', 'Demo partner', 200),
    }),
    key: pipe(
      strictObject({
        id: keyIdSchema('Public id of the key: the 12 characters after its prefix.', 'Zt81mK0qWv3B'),
        name: textSchema('What its owner calls it.', 'WordPress plugin', 200),
        environment: oneOf(['live', 'test'], 'What a test key does is stored as a test.', 'live'),
        hint: patternSchema('Its last four characters.', '…9xQ2', '^…[0-9A-Za-z]{4}$', 5),
        created_at: instantSchema('When it was issued.', '2026-03-01T09:00:00.000Z'),
        expires_at: nullable(
          instantSchema('From when on it is no longer valid.', '2027-03-01T09:00:00.000Z'),
        ),
        rotation: nullable(pipe(
          strictObject({
            successor_id: keyIdSchema('Id of the key that replaces it.', 'b7Yc0PqLs9Xa'),
            retires_at: instantSchema('Until when this one still works.', '2026-11-21T09:00:00.000Z'),
          }),
          metadata({ description: 'Set while the key is being replaced.' }),
        )),
      }),
      metadata({ title: 'Key', description: 'A key without its secret.' }),
    ),
    scopes: pipe(
      array(strictObject({
        scope: oneOf(SCOPES, 'A scope that the key holds.', 'read:profiles'),
        in_force: booleanSchema('Whether an active module of the partner needs it.', true),
      })),
      metadata({ description: 'The scopes that the key holds.', maxItems: SCOPES.length }),
    ),
    modules: pipe(
      array(strictObject({
        module: oneOf(MODULE_NAMES, 'An integration module.', 'profiles'),
        active: booleanSchema('Whether the partner has activated it.', true),
        ready: booleanSchema('Whether this key can serve it.', true),
        missing_scope: nullable(oneOf(SCOPES, 'The scope that the key would need.', 'read:profiles')),
      })),
      metadata({
        description: 'All modules.',
        maxItems: MODULE_NAMES.length,
        examples: [[{ module: 'profiles', active: true, ready: true, missing_scope: null }]],
      }),
    ),
    endpoints: pipe(
      array(strictObject({
        method: oneOf(['GET', 'POST'], 'HTTP method.', 'GET'),
        path: textSchema('Path with `{slug}` for a parameter.', '/service/public/profiles', 200),
        scope: oneOf(SCOPES, 'The scope that it needs.', 'read:profiles'),
        allowed: booleanSchema('Whether this key may use it now.', true),
      })),
      metadata({ description: 'Every endpoint that needs a scope.', maxItems: 100 }),
    ),
    limits: pipe(
      array(strictObject({
        policy: oneOf(LIMIT_NAMES, 'Name of the policy.', 'key'),
        quota: countSchema('Requests in a window.', 600),
        window_seconds: countSchema('Length of the window.', 60, MAX_WINDOW_SECONDS),
        remaining: countSchema('Requests that are left.', 599),
        resets_in_seconds: countSchema('When the quota is whole again.', 60, MAX_WINDOW_SECONDS),
      })),
      metadata({ description: 'The policies that are on.', maxItems: LIMIT_NAMES.length }),
    ),
    version: patternSchema('Version of the wire.', API_VERSION, '^\\d{4}-\\d{2}-\\d{2}$', 10),
    checked_at: instantSchema('The instant that all of this is true of.', '2026-11-20T09:00:00.000Z'),
    max_staleness_ms: countSchema('Within how many milliseconds a change binds.', 1000, 10_000),
    stale_if_error: optional(pipe(
      strictObject({
        seconds: countSchema('For how long beyond that.', 30, MAX_STALE_IF_ERROR_SECONDS),
        since: nullable(instantSchema('Since when the store has not answered.', '2026-11-20T09:00:00.000Z')),
      }),
      metadata({
        description:
          'Only where the operator has chosen that known keys go on working for a while when the store is out of ' +
          'reach: a change may then bind later.',
      }),
    )),
  }),
  metadata({ title: 'Verification', description: 'What a key is and what it may do.' }),
)

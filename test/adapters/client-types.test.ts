/** The client's types have exactly the members of the responses that a service sends, as the OpenAPI document does. */
import t from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { createDocument } from '../../core/openapi/document.ts'
import type { ResponseObject } from '../../core/openapi/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { ROUTES } from '../../core/routes/router.ts'
import type { JsonSchema } from '../../core/schemas/json-schema.ts'
import { type PartnerApiOptions, resolveSettings } from '../../core/settings.ts'
import { CLIENT, compile } from '../support/compile.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { resolve, validatorFor } from '../support/openapi-schemas.ts'
import { fillWorld } from '../support/world.ts'

const document = await createDocument(ROUTES, resolveSettings({}))
const validate = validatorFor(document)
const problemSchema = { $ref: '#/components/schemas/Problem' }

/** The operations that answer with JSON, but for health and those whose response is a document. */
const operations = new Map(
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      [operation.operationId, { path, method: method.toUpperCase(), operation }] as const
    )
  ).filter(([id, { operation }]) => id.endsWith('Claim') || operation.security.length > 0),
)

/** The names that the types of responses have without a method, or with one that keeps a secret to itself. */
const TYPES: Readonly<Record<string, string>> = {
  problem: 'client.Problem',
  rotateKey: '{ readonly data: client.KeyRotation }',
  showClaim: '{ readonly data: client.ClaimOffer }',
  useClaim: '{ readonly data: client.ClaimedKey }',
}

/** Distinct bodies by operation, and those of problems. */
const recorded = new Map<string, Set<string>>()

interface Sending {
  readonly key?: { readonly text: string }
  readonly partner?: string
  /** Values in the path. */
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
}

/** Serves a store. @returns A function that sends a request and records the response. */
async function recorder(store: Store, options: PartnerApiOptions = {}) {
  const api = createPartnerApi({ store }, { maxStalenessMs: 0, log: () => {}, ...options })
  const server = await serve(api, { port: 0 })
  t.teardown(async () => {
    await server.close()
    await api.close()
  })
  const record = async (id: string, { key, partner = 'demo', path = {}, query = {}, body }: Sending) => {
    const { path: template, method } = operations.get(id)!
    const url = new URL(template.replace(/\{(\w+)\}/g, (_, name) => path[name]!), server.url)
    const headers = new Headers({ accept: 'application/json' })
    if (key !== undefined) headers.set('x-service-partner-key', key.text)
    let content: string | null = null
    if (key !== undefined && method === 'POST') {
      headers.set('content-type', 'application/json')
      content = JSON.stringify({ partner, ...body })
    } else if (key !== undefined) {
      url.search = String(new URLSearchParams({ partner, ...query }))
    }
    const response = await fetch(url, { method, headers, body: content })
    const text = await response.text()
    const kind = response.ok ? id : 'problem'
    recorded.set(kind, (recorded.get(kind) ?? new Set()).add(text))
    return JSON.parse(text)
  }
  return { api, record }
}

/**
 * Differences between a schema and the values that were sent: members that it lacks and those that were never sent, and
 * members that may be absent or null and never were.
 */
function differences(schema: JsonSchema, values: readonly unknown[], place: string): string[] {
  const { properties, required = [], items, anyOf, oneOf, type } = resolve(schema, document)
  if (values.length === 0) return [`${place} was never sent`]
  const branches = anyOf ?? oneOf
  if (branches !== undefined) {
    return branches.flatMap((one, index) =>
      differences(one, values.filter((value) => validate(one, value).length === 0), `${place}|${index}`)
    )
  }
  const found: string[] = []
  const sent = values.filter((value) => value !== null)
  if (Array.isArray(type) && type.includes('null') && sent.length === values.length) {
    found.push(`${place} was never null`)
  }
  if (items !== undefined) found.push(...differences(items, sent.flat(), `${place}[]`))
  if (properties === undefined) return found
  const objects = sent as Readonly<Record<string, unknown>>[]
  const names = new Set([...Object.keys(properties), ...objects.flatMap(Object.keys)])
  for (const name of names) {
    const holders = objects.filter((one) => Object.hasOwn(one, name))
    const member = properties[name]
    const here = `${place}.${name}`
    if (member === undefined) found.push(`${here} is not described`)
    else found.push(...differences(member, holders.map((one) => one[name]), here))
    if (!required.includes(name) && holders.length === objects.length) {
      found.push(`${here} was never absent`)
    }
  }
  return found
}

/** The paths of all members of a value. */
function membersOf(value: unknown, place = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => membersOf(one, place))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [
    place + name,
    ...membersOf(member, `${place}${name}.`),
  ])
}

const SHAPES = `import type { Page, PagedList, WithResponse } from ${JSON.stringify(CLIENT)}

/** The body from which a method of the client takes its result. */
export type Body<Method> = Method extends (...args: never) => Promise<WithResponse<infer Data>>
  ? { readonly data: Data }
  : Method extends (...args: never) => PagedList<infer Row>
    ? { readonly data: readonly Row[], readonly page: Page }
    : never

/** The paths of all members of a type. */
export type Members<T> = T extends string ? never
  : T extends readonly (infer Row)[] ? Members<Row>
  : T extends object ? { [Name in keyof T & string]-?: Name | \`\${Name}.\${Members<T[Name]>}\` }[keyof T & string]
  : never
`

/** A module that assigns bodies to a type, and their members to all that the type has. */
function assignBodies(type: string, bodies: readonly string[]): string {
  const members = bodies.flatMap((body) => membersOf(JSON.parse(body)))
  const all = Object.fromEntries(members.map((name) => [name, true]))
  return [
    `import type * as client from ${JSON.stringify(CLIENT)}`,
    "import type { Body, Members } from './shapes.ts'",
    `type Type = ${type}`,
    `export const members: Record<Members<Type>, true> = ${JSON.stringify(all)}`,
    ...bodies.map((body, index) => `export const body${index}: Type = ${body}`),
  ].join('\n')
}

t.test('recorded responses have the types of the client and the members of the document', async (t) => {
  const store = await openMemoryStore()
  const world = await fillWorld(store)
  const { partners, keyRing, keys, issue } = world
  const { api, record } = await recorder(store)
  await partners.update('demo', { selfService: ['rotate', 'revoke'] })
  await partners.resume('hush')
  const full = keys['demo full']
  const hush = { key: keys['hush full'], partner: 'hush' }
  const ending = await issue({ expiresAt: Date.now() + 86_400_000 })

  for (const id of 'widget recentProfiles profiles banner countries industries plans'.split(' ')) {
    await record(id, { key: full })
  }
  await record('profiles', { key: full, query: { limit: '100' } })
  const [profile] = world.lines.profiles
  await world.publish('profiles', [{ ...profile, slug: 'open-ended', employees: { min: 5 } }])
  await record('profile', { key: full, path: { slug: 'open-ended' } })
  for (const { slug } of world.lines.profiles) {
    await record('profile', { key: full, path: { slug } })
  }
  for (const id of ['banner', 'widget']) await record(id, hush)
  await record('widget', { key: keys['kiosk full'], partner: 'kiosk' })

  for (const body of [{ name: 'Jane' }, { name: 'Max', country: 'de', plan: 'starter' }]) {
    await record('signUp', { key: full, body: { email: 'jane@example.com', ...body } })
  }
  await keyRing.disable(keys['demo local'].id)
  await keyRing.enable(keys['demo local'].id)
  await keyRing.remove(keys['demo test'].id, ['read:plans'])
  await keyRing.grant(keys['demo profiles'].id, ['read:plans'])
  await keyRing.remove(keys['demo profiles'].id, ['read:plans'])
  await partners.deactivate('demo', ['pricing'])
  await record('plans', { key: full })
  await partners.activate('demo', ['pricing'])
  await record('banner', { key: keys['demo powerless'] })
  await record('signUp', { key: full, body: { email: 'nobody', name: '' } })
  await record('countries', { key: full, query: { in_use: 'yes' } })

  for (const key of [full, ending]) {
    await record('rotateKey', { key, body: { overlap_seconds: 3_600 } })
    await record('verifyKey', { key })
  }
  await record('verifyKey', { key: keys['demo powerless'] })
  await record('revokeKey', { key: await issue({}) })
  const rotates = keys['demo profiles'].id
  for (const request of [{}, { expiresAt: Date.now() + 86_400_000 }, { rotates }]) {
    const path = { token: (await world.offer(request)).path.replace('/claim/', '') }
    await record('showClaim', { path })
    await record('useClaim', { path })
  }
  await api.flush()
  await record('reportSummary', { key: full })
  for (const limit of ['1', '100']) {
    await record('reportActivity', { key: full, query: { limit } })
    await record('problems', { key: full, query: { limit } })
  }

  let isDown = false
  const revision = () => {
    if (isDown) throw new Error('unreachable')
    return store.revision()
  }
  const lenient = await recorder({ ...store, revision }, { staleIfErrorSeconds: 30 })
  for (isDown of [false, true]) await lenient.record('verifyKey', { key: full })

  t.strictSame([...recorded.keys()].sort(), ['problem', ...operations.keys()].sort(), 'every operation')
  const modules: Record<string, string> = { shapes: SHAPES }
  for (const [id, texts] of recorded) {
    const bodies = [...texts]
    const { responses = {} } = operations.get(id)?.operation ?? {}
    const status = Object.keys(responses).find((status) => status < '300')
    const success = status === undefined ? undefined : responses[status] as ResponseObject
    const schema = success?.content?.['application/json']?.schema ?? problemSchema
    t.strictSame(differences(schema, bodies.map((body) => JSON.parse(body)), id), [])
    modules[id] = assignBodies(TYPES[id] ?? `Body<client.PartnerClient['${id}']>`, bodies)
  }
  const named = '{ readonly data: client.Named }'
  modules['excess'] = assignBodies(named, ['{"data":{"slug":"a","name":"A","title":"A"}}'])
  modules['lacking'] = assignBodies(named, ['{"data":{"slug":"a"}}'])
  const errors = compile(modules)
  const expected = /^(?:excess|lacking)\.ts\((4|5),/
  t.strictSame(errors.filter((error) => !expected.test(error)), [], 'each has its type of the client')
  t.equal(errors.length, 4, 'and the check finds what a type lacks, and what the service does')
})

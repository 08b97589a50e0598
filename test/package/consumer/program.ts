/** A program that uses the published types: compiled by a test, never run. */
import {
  type HttpResponse,
  awaitReceipt,
  createKeyAdministration,
  createPartnerAdministration,
  createPartnerApi,
  type Directory,
  type HttpRequest,
  importContent,
  MODULE_NAMES,
  type PartnerApi,
  type PartnerApiOptions,
  Problem,
  AdminError,
  type Store,
} from 'partner-api'
import { serve as serveOnBun } from 'partner-api/bun'
import { createPartnerClient, ServiceUnreachableError, type PartnerClient, PartnerProblem } from 'partner-api-client'
import { serve as serveOnDeno } from 'partner-api/deno'
import { type RunningServer, serve as serveOnNode, type ServeOptions } from 'partner-api/node'
import { openPostgresStore } from 'partner-api/postgres'
import { openSqliteStore, StoreError } from 'partner-api/sqlite'
import { createWorker, type WorkerHandler } from 'partner-api/workers'

interface Env {
  readonly NAME: string
}

const memory = await openSqliteStore(':memory:')
export const stores: readonly Store[] = [
  memory,
  await openSqliteStore('store.db'),
  await openPostgresStore('postgres://partner_api@db.example/partner_api'),
]
const options: PartnerApiOptions = { serviceName: 'acme', limits: { key: { quota: 10, windowSeconds: 1 } } }
const api: PartnerApi = createPartnerApi({ store: memory, directory: memory satisfies Directory }, options)
const listening: ServeOptions = { port: 0, keepAliveTimeoutMs: 1 }
export const servers: readonly RunningServer[] = [
  await serveOnNode(api, listening),
  await serveOnBun(api, { port: 0 }),
  await serveOnDeno(api, { port: 0 }),
]
export const worker: WorkerHandler<Env> = createWorker(({ NAME }: Env) =>
  createPartnerApi({ store: memory }, { serviceName: NAME })
)
export const response: Promise<Response> = api.fetch(new Request('https://api.example/service/health'))

const request: HttpRequest = {
  method: 'GET',
  target: '/service/health',
  header: () => undefined,
  body: () => {
    throw new Problem('body_too_large')
  },
  address: undefined,
}
export const handled: HttpResponse = await api.handle(request)

try {
  await createPartnerAdministration(memory, { actor: 'a' }).create({
    slug: 'a',
    name: 'A',
    modules: MODULE_NAMES,
  })
} catch (error) {
  if (error instanceof AdminError || error instanceof StoreError) console.log(error.code satisfies string)
}
const { key } = await createKeyAdministration(memory, { actor: 'a' })
  .issue({ partner: 'a', name: 'A', environment: 'test' })
export const id: string = key.id
export const receipt = await awaitReceipt(memory)
await importContent(memory, 'profiles', ['{}'], { now: Date.now(), actor: 'a' })

const client: PartnerClient = createPartnerClient({
  url: 'https://api.example',
  key: id,
  partner: 'a',
  retries: Math.random() < 0.5 ? 1 : undefined,
})
const given: { readonly signal?: AbortSignal } = {}
console.log((await client.plans({ signal: given.signal })).length)
for await (const { slug, country } of client.profiles({ country: ['DE'] })) {
  console.log(slug satisfies string, country.code satisfies string)
}
await client.signUp({ email: 'jane@example.com', name: 'Jane' }).catch((error: unknown) => {
  if (error instanceof PartnerProblem) console.log(error.code satisfies string)
  else if (error instanceof ServiceUnreachableError) console.log(error.status satisfies number | undefined)
})

// Ensures that the types are not `any`.
// @ts-expect-error
createPartnerApi({ store: memory }, { serviceNme: 'acme' })
// @ts-expect-error
createPartnerApi({})
// @ts-expect-error
await serveOnNode(api, { port: '0' })
// @ts-expect-error
await client.profiles({ sort: 'slug' })
// @ts-expect-error
createWorker(() => 1)
// @ts-expect-error
await openSqliteStore()

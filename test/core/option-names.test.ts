/** Every public function refuses options that do not exist: a misspelt one would be ignored, with an unsafe result. */
import t from 'tap'
import * as v from 'valibot'
import { createPartnerClient } from '../../adapters/client/mod.ts'
import { createMetrics } from '../../adapters/metrics.ts'
import { createTracing } from '../../adapters/opentelemetry.ts'
import { createListener, serve } from '../../adapters/runtimes/node.ts'
import { createWorker } from '../../adapters/runtimes/workers.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { startWebhooks } from '../../adapters/webhooks/deliverer.ts'
import {
  createClaim,
  createModuleAdministration,
  createPartnerApi,
  defineEndpoint,
  importContent,
  importKeys,
  revokeClaim,
} from '../../core/mod.ts'
import { newFile } from '../support/cli-program.ts'
import { createPartner, PARTNER } from '../support/partner.ts'

const store = await openSqliteStore(newFile())
const { keys, partners, issue } = await createPartner(store)
const { key } = await issue()
const api = createPartnerApi({ store })
t.teardown(async () => {
  await api.close()
  await store.close()
})

const operator = { actor: 'test' }
const modules = createModuleAdministration(store, operator)
const newKey = { partner: PARTNER, name: 'Plugin', environment: 'live' } as const
const endpoint = { name: 'x', method: 'GET', path: '/x', scope: 'read:profiles', summary: 'X' } as const
const handle = () => ({ data: 1 })
const client = createPartnerClient({ url: 'http://127.0.0.1:9', key: 'k', partner: PARTNER })
// deno-lint-ignore no-explicit-any -- what TypeScript would refuse
const wrong = (options: object): any => options

/** Calls by the option that does not exist and the one that the error names. */
const calls: Readonly<Record<string, () => unknown>> = {
  'createPartnerApi trustedProxys trustedProxies': () =>
    createPartnerApi({ store }, wrong({ trustedProxys: 1 })),
  'createPartnerApi, first argument (options are in the second) sotre store': () =>
    createPartnerApi(wrong({ store, sotre: store })),
  'limits kee key': () =>
    createPartnerApi({ store }, { limits: wrong({ kee: { quota: 1, windowSeconds: 1 } }) }),
  'limits.key windowseconds windowSeconds': () =>
    createPartnerApi({ store }, {
      limits: { key: wrong({ quota: 1, windowSeconds: 1, windowseconds: 60 }) },
    }),
  'deployment titel title': () => createPartnerApi({ store }, { deployment: wrong({ titel: 'x' }) }),
  'deployment.contact mail email': () =>
    createPartnerApi({ store }, { deployment: { contact: wrong({ mail: 'x' }) } }),
  'deployment.servers urls url': () =>
    createPartnerApi({ store }, { deployment: { servers: [wrong({ url: '/', urls: 'x' })] } }),
  'defineEndpoint respone response': () =>
    defineEndpoint(wrong({ ...endpoint, handle, respone: v.string() })),
  'defineEndpoint, paging maximun maximum': () =>
    defineEndpoint({ ...endpoint, handle, paging: wrong({ limit: 1, maximum: 1, maximun: 1 }) }),
  'protect limit limits': () => api.protect(wrong({ ...endpoint, limit: ['key'] }), () => new Response()),
  'keys.issue scope scopes': () => keys.issue(wrong({ ...newKey, scope: ['read:profiles'] })),
  'keys.issue allowed allow': () => keys.issue(wrong({ ...newKey, allowed: ['10.0.0.0/8'] })),
  'keys.issue expireAt expiresAt': () => keys.issue(wrong({ ...newKey, expireAt: 1 })),
  'keys.rotate overlapms overlapMs': () => keys.rotate(key.id, wrong({ overlapms: 0 })),
  'keys.update nmae name': () => keys.update(key.id, wrong({ nmae: 'x' })),
  'limits clera clear': () => keys.update(key.id, { limits: wrong({ clera: ['key'] }) }),
  'limits.signup quotas quota': () =>
    keys.update(key.id, { limits: { set: { signup: wrong({ quota: 1, windowSeconds: 1, quotas: 2 }) } } }),
  'keys.list partnr partner': async () => {
    for await (const { id } of keys.list(wrong({ partnr: PARTNER }))) return id
  },
  'partners.create module modules': () =>
    partners.create(wrong({ slug: 'beta', name: 'Beta', modules: [], module: ['profiles'] })),
  'partners.update selfservice selfService': () => partners.update(PARTNER, wrong({ selfservice: null })),
  'modules.define featur feature': () =>
    modules.define(wrong({ name: 'x', scope: 'read:x', feature: 'X', featur: 'X' })),
  'The operator clok clock': () => createModuleAdministration(store, wrong({ ...operator, clok: Date.now })),
  'The operator actr actor': () => revokeClaim(store, wrong({ ...operator, actr: 'x' }), 'clm_1'),
  'importKeys dryrun dryRun': () => importKeys(store, [], operator, wrong({ dryrun: true })),
  'importContent dryrun dryRun': () =>
    importContent(store, 'plans', [], wrong({ now: 0, actor: 'test', dryrun: true })),
  'keys.issue alow allow': () => createClaim(store, operator, wrong({ ...newKey, alow: [] }), 60_000),
  'keys.rotate overlapM overlapMs': () =>
    createClaim(store, operator, wrong({ rotates: key.id, overlapM: 0 }), 60_000),
  'openSqliteStore readonly readOnly': () => openSqliteStore(newFile(), wrong({ readonly: true })),
  'openPostgresStore migrat migrate': () =>
    openPostgresStore('postgres://127.0.0.1:9/x', wrong({ migrat: false })),
  'serve prot port': () => serve(api, wrong({ prot: 1 })),
  'createListener adress address': () => createListener(api, wrong({ adress: () => undefined })),
  'createWorker trustConnectingIP trustConnectingIp': () =>
    createWorker(() => api, wrong({ trustConnectingIP: true })),
  'startWebhooks allowPrivat allowPrivate': () => startWebhooks(store, wrong({ allowPrivat: true })),
  'createMetrics bye by': () => createMetrics(wrong({ bye: 'partner' })),
  'createTracing schema scheme': () => createTracing(wrong({ schema: 'https' })),
  'createPartnerClient timeout timeoutMs': () =>
    createPartnerClient(wrong({ url: 'http://127.0.0.1:9', key: 'k', partner: PARTNER, timeout: 1 })),
  'The request retrys retries': () => client.plans(wrong({ retrys: 0 })),
  'rotateKey overlapSecond overlapSeconds': () =>
    client.rotateKey(wrong({ store: () => undefined, overlapSecond: 0 })),
  'signUp idempotencykey idempotencyKey': () =>
    client.signUp({ email: 'a@b.example', name: 'A' }, wrong({ idempotencykey: 'x' })),
}

for (const [name, call] of Object.entries(calls)) {
  const [, where, option, nearest] = /^(.*) (\w+) (\w+)$/.exec(name)!
  t.test(name, async (t) => {
    await t.rejects(async () => await call(), {
      name: 'TypeError',
      message: `${where}: there is no option "${option}". Did you mean "${nearest}"?`,
    })
  })
}

t.test('an option that is like no other, and what is no object', async (t) => {
  await t.rejects(serve(api, wrong({ tls: true })), {
    name: 'TypeError',
    message: /^serve: there is no option "tls"\. The options are port, host, /,
  })
  for (
    const refuse of [
      () => createPartnerApi({ store }, wrong(null!)),
      () => defineEndpoint(undefined as never),
    ]
  ) {
    t.throws(refuse, { name: 'TypeError', message: /^\w+: the options must be an object\.$/ })
  }
  // A key in the wrong place is not repeated.
  await t.rejects(keys.issue('secret' as never), { message: 'keys.issue: the options must be an object.' })
})

/** Every public function refuses options that do not exist: a misspelt one would be ignored, with an unsafe result. */
import { readFile } from 'node:fs/promises'
import t from 'tap'
import * as v from 'valibot'
import { createPartnerClient } from '../../adapters/client/mod.ts'
import { createMetrics } from '../../adapters/metrics.ts'
import { createTracing } from '../../adapters/opentelemetry.ts'
import { serve as serveOnBun } from '../../adapters/runtimes/bun.ts'
import { createGuard, createListener, serve } from '../../adapters/runtimes/node.ts'
import { createWorker } from '../../adapters/runtimes/workers.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createWebhookAdministration, startWebhooks } from '../../adapters/webhooks/deliverer.ts'
import {
  createClaim,
  createKeyAdministration,
  createModuleAdministration,
  createPartnerAdministration,
  createPartnerApi,
  defineEndpoint,
  importContent,
  importKeys,
  Problem,
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
const webhooks = createWebhookAdministration(store, operator)
const newKey = { partner: PARTNER, name: 'Plugin', environment: 'live' } as const
const endpoint = { name: 'x', method: 'GET', path: '/x', scope: 'read:profiles', summary: 'X' } as const
const handle = () => ({ data: 1 })
const client = createPartnerClient({ url: 'http://127.0.0.1:9', key: 'k', partner: PARTNER })
// deno-lint-ignore no-explicit-any -- what TypeScript would refuse
const wrong = (options: object): any => options
const misspelt = wrong({ retrys: 0 })

/** Calls of each public function, by the option that does not exist and the one that the error names. */
const calls: Readonly<Record<string, Readonly<Record<string, () => unknown>>>> = {
  createPartnerApi: {
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
  },
  'createPartnerApi().protect': {
    'protect limit limits': () => api.protect(wrong({ ...endpoint, limit: ['key'] }), () => new Response()),
  },
  defineEndpoint: {
    'defineEndpoint respone response': () =>
      defineEndpoint(wrong({ ...endpoint, handle, respone: v.string() })),
    'defineEndpoint, paging maximun maximum': () =>
      defineEndpoint({ ...endpoint, handle, paging: wrong({ limit: 1, maximum: 1, maximun: 1 }) }),
  },
  Problem: {
    'Problem retryAfterSecond retryAfterSeconds': () =>
      new Problem('overloaded', wrong({ retryAfterSecond: 1 })),
  },
  createKeyAdministration: {
    'The operator clock_ clock': () =>
      createKeyAdministration(store, wrong({ ...operator, clock_: Date.now })),
  },
  'createKeyAdministration().issue': {
    'keys.issue scope scopes': () => keys.issue(wrong({ ...newKey, scope: ['read:profiles'] })),
    'keys.issue allowed allow': () => keys.issue(wrong({ ...newKey, allowed: ['10.0.0.0/8'] })),
    'keys.issue expireAt expiresAt': () => keys.issue(wrong({ ...newKey, expireAt: 1 })),
  },
  'createKeyAdministration().rotate': {
    'keys.rotate overlapms overlapMs': () => keys.rotate(key.id, wrong({ overlapms: 0 })),
  },
  'createKeyAdministration().update': {
    'keys.update nmae name': () => keys.update(key.id, wrong({ nmae: 'x' })),
    'limits clera clear': () => keys.update(key.id, { limits: wrong({ clera: ['key'] }) }),
    'limits.signup quotas quota': () =>
      keys.update(key.id, { limits: { set: { signup: wrong({ quota: 1, windowSeconds: 1, quotas: 2 }) } } }),
  },
  'createKeyAdministration().list': {
    'keys.list partnr partner': async () => {
      for await (const { id } of keys.list(wrong({ partnr: PARTNER }))) return id
    },
  },
  createPartnerAdministration: {
    'The operator actors actor': () => createPartnerAdministration(store, wrong({ ...operator, actors: [] })),
  },
  'createPartnerAdministration().create': {
    'partners.create module modules': () =>
      partners.create(wrong({ slug: 'beta', name: 'Beta', modules: [], module: ['profiles'] })),
  },
  'createPartnerAdministration().update': {
    'partners.update selfservice selfService': () => partners.update(PARTNER, wrong({ selfservice: null })),
  },
  createModuleAdministration: {
    'The operator clok clock': () =>
      createModuleAdministration(store, wrong({ ...operator, clok: Date.now })),
  },
  'createModuleAdministration().define': {
    'modules.define featur feature': () =>
      modules.define(wrong({ name: 'x', scope: 'read:x', feature: 'X', featur: 'X' })),
  },
  importKeys: {
    'importKeys dryrun dryRun': () => importKeys(store, [], operator, wrong({ dryrun: true })),
  },
  importContent: {
    'importContent dryrun dryRun': () =>
      importContent(store, 'plans', [], wrong({ now: 0, actor: 'test', dryrun: true })),
  },
  createClaim: {
    'keys.issue alow allow': () => createClaim(store, operator, wrong({ ...newKey, alow: [] }), 60_000),
    'keys.rotate overlapM overlapMs': () =>
      createClaim(store, operator, wrong({ rotates: key.id, overlapM: 0 }), 60_000),
  },
  revokeClaim: {
    'The operator actr actor': () => revokeClaim(store, wrong({ ...operator, actr: 'x' }), 'clm_1'),
  },
  openSqliteStore: {
    'openSqliteStore readonly readOnly': () => openSqliteStore(newFile(), wrong({ readonly: true })),
  },
  openPostgresStore: {
    'openPostgresStore migrat migrate': () =>
      openPostgresStore('postgres://127.0.0.1:9/x', wrong({ migrat: false })),
  },
  serve: {
    'serve prot port': () => serve(api, wrong({ prot: 1 })),
  },
  'serve of ./bun': {
    'serve prot port': () => serveOnBun(api, wrong({ prot: 1 })),
  },
  createListener: {
    'createListener adress address': () => createListener(api, wrong({ adress: () => undefined })),
  },
  createGuard: {
    'createGuard adress address': () => createGuard(api, endpoint, wrong({ adress: () => undefined })),
    'createGuard limit limits': () => createGuard(api, wrong({ ...endpoint, limit: ['key'] })),
  },
  createWorker: {
    'createWorker trustConnectingIP trustConnectingIp': () =>
      createWorker(() => api, wrong({ trustConnectingIP: true })),
  },
  startWebhooks: {
    'startWebhooks allowPrivat allowPrivate': () => startWebhooks(store, wrong({ allowPrivat: true })),
  },
  createWebhookAdministration: {
    'createWebhookAdministration keys key': () =>
      createWebhookAdministration(store, operator, wrong({ keys: [] })),
    'The operator actr actor': () => createWebhookAdministration(store, wrong({ ...operator, actr: 'x' })),
  },
  'createWebhookAdministration().create': {
    'webhooks.create partners partner': () =>
      webhooks.create(wrong({ url: 'https://hooks.example', events: ['key.issued'], partners: [PARTNER] })),
  },
  'createWebhookAdministration().update': {
    'webhooks.update event events': () => webhooks.update('whk_1', wrong({ event: ['key.issued'] })),
  },
  'createWebhookAdministration().rotateSecret': {
    'webhooks.rotateSecret overlap overlapMs': () => webhooks.rotateSecret('whk_1', wrong({ overlap: 0 })),
  },
  createMetrics: {
    'createMetrics bye by': () => createMetrics(wrong({ bye: 'partner' })),
  },
  createTracing: {
    'createTracing schema scheme': () => createTracing(wrong({ schema: 'https' })),
  },
  createPartnerClient: {
    'createPartnerClient timeout timeoutMs': () =>
      createPartnerClient(wrong({ url: 'http://127.0.0.1:9', key: 'k', partner: PARTNER, timeout: 1 })),
  },
  'createPartnerClient().rotateKey': {
    'rotateKey overlapSecond overlapSeconds': () =>
      client.rotateKey(wrong({ store: () => undefined, overlapSecond: 0 })),
  },
  'createPartnerClient().signUp': {
    'signUp idempotencykey idempotencyKey': () =>
      client.signUp({ email: 'a@b.example', name: 'A' }, wrong({ idempotencykey: 'x' })),
  },
  ...Object.fromEntries(
    Object.entries({
      verifyKey: () => client.verifyKey(misspelt),
      problems: () => client.problems({}, misspelt),
      revokeKey: () => client.revokeKey(misspelt),
      widget: () => client.widget(misspelt),
      recentProfiles: () => client.recentProfiles({}, misspelt),
      profiles: () => client.profiles({}, misspelt),
      profile: () => client.profile('a', misspelt),
      banner: () => client.banner(misspelt),
      countries: () => client.countries({}, misspelt),
      industries: () => client.industries({}, misspelt),
      plans: () => client.plans(misspelt),
      reportSummary: () => client.reportSummary({}, misspelt),
      reportActivity: () => client.reportActivity({}, misspelt),
      request: () => client.request('GET /a', misspelt),
      paginate: () => client.paginate('GET /a', misspelt),
    }).map(([name, call]) => [`createPartnerClient().${name}`, { 'The request retrys retries': call }]),
  ),
}

/** Public functions that take no options. What they take is a port, or the host's. */
const WITHOUT_OPTIONS = [
  ...['AdminError', 'awaitReceipt', 'checkDirectory', 'directoryOf', 'fold', 'foldWords', 'grantOf'],
  ...['createCachingFetch', 'importWebhookKey', 'measureWebhooks', 'renderMetrics', 'verifyWebhook'],
  ...['PartnerApiError', 'PartnerProblem', 'ServiceUnreachableError', 'WebhookVerificationError'],
  ...['close', 'fetch', 'flush', 'handle'].map((name) => `createPartnerApi().${name}`),
  ...['disable', 'enable', 'grant', 'remove', 'revoke', 'setMaxLifetime', 'show'].map((name) =>
    `createKeyAdministration().${name}`
  ),
  ...['activate', 'deactivate', 'list', 'remove', 'resume', 'show', 'suspend'].map((name) =>
    `createPartnerAdministration().${name}`
  ),
  ...['forget', 'list'].map((name) => `createModuleAdministration().${name}`),
  ...['disable', 'enable', 'list', 'remove', 'show'].map((name) => `createWebhookAdministration().${name}`),
  ...['add', 'collect'].map((name) => `createMetrics().${name}`),
]

/** What the entries of the package and the client export. */
async function publicFunctions(): Promise<Map<unknown, string>> {
  const root = new URL('../../', import.meta.url)
  const { exports } = JSON.parse(await readFile(new URL('deno.json', root), 'utf8'))
  const named = new Map<unknown, string>()
  for (const [entry, source] of Object.entries({ ...exports, client: './adapters/client/mod.ts' })) {
    for (const [name, value] of Object.entries(await import(new URL(String(source), root).href))) {
      if (typeof value !== 'function' || named.has(value)) continue
      named.set(value, [...named.values()].includes(name) ? `${name} of ${entry}` : name)
    }
  }
  const objects = {
    createPartnerApi: api,
    createKeyAdministration: keys,
    createPartnerAdministration: partners,
    createModuleAdministration: modules,
    createWebhookAdministration: webhooks,
    createPartnerClient: client,
    createMetrics: createMetrics(),
  }
  for (const [creator, object] of Object.entries(objects)) {
    for (const [name, value] of Object.entries(object)) {
      if (typeof value === 'function') named.set(value, `${creator}().${name}`)
    }
  }
  return named
}

t.test('every public function is in the table, or takes no options', async (t) => {
  const listed = [...Object.keys(calls), ...WITHOUT_OPTIONS]
  t.strictSame(listed.toSorted(), [...(await publicFunctions()).values()].toSorted())
})

for (const [called, rows] of Object.entries(calls)) {
  for (const [name, call] of Object.entries(rows)) {
    const [, where, option, nearest] = /^(.*) (\w+) (\w+)$/.exec(name)!
    t.test(`${called}: ${name}`, async (t) => {
      await t.rejects(async () => await call(), {
        name: 'TypeError',
        message: `${where}: there is no option "${option}". Did you mean "${nearest}"?`,
      })
    })
  }
}

t.test('a method of the client takes no option of another', async (t) => {
  for (const option of ['query', 'params', 'body', 'idempotencyKey']) {
    const given = wrong({ [option]: {} })
    for (const call of [() => client.plans(given), () => client.profiles({}, given)]) {
      await t.rejects(async () => await call(), {
        message:
          `The request: there is no option "${option}". The options are timeoutMs, retries, signal, headers.`,
      })
    }
  }
})

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

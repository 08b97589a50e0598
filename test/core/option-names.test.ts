/**
 * Every public function refuses options that do not exist, and values of another kind: a misspelt one would be ignored, and a
 * text read by characters, with an unsafe result.
 */
import { readFile } from 'node:fs/promises'
import t from 'tap'
import * as v from 'valibot'
import { createCachingFetch, createPartnerClient, verifyWebhook } from '../../adapters/client/mod.ts'
import { createMetrics } from '../../adapters/metrics.ts'
import { createTracing } from '../../adapters/opentelemetry.ts'
import { serve as serveOnBun } from '../../adapters/runtimes/bun.ts'
import { createGuard, createListener, serve } from '../../adapters/runtimes/node.ts'
import { createWorker } from '../../adapters/runtimes/workers.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import {
  createWebhookAdministration,
  importWebhookKey,
  startWebhooks,
} from '../../adapters/webhooks/deliverer.ts'
import {
  awaitReceipt,
  checkDirectory,
  createClaim,
  createKeyAdministration,
  createModuleAdministration,
  createPartnerAdministration,
  createPartnerApi,
  defineEndpoint,
  directoryOf,
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
    'deployment.servers[0] urls url': () =>
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
  'closeServer',
  'StoreError',
  'AdminError',
  'awaitReceipt',
  'checkDirectory',
  'directoryOf',
  'fold',
  'foldWords',
  'grantOf',
  'createCachingFetch',
  'importWebhookKey',
  'measureWebhooks',
  'renderMetrics',
  'verifyWebhook',
  'PartnerApiError',
  'PartnerProblem',
  'ServiceUnreachableError',
  'WebhookVerificationError',
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

const metrics = createMetrics()

/** Calls with a value of another kind, as programs without types make them, by the sentence that refuses it. */
const misuses: Readonly<Record<string, () => unknown>> = {
  'keys.issue: allow must be a list of texts, not a text.': () =>
    keys.issue(wrong({ ...newKey, allow: '10.0.0.1' })),
  'keys.issue: allow must be a list of texts, not a list of other values.': () =>
    keys.issue(wrong({ ...newKey, allow: [undefined] })),
  'keys.issue: scopes must be a list of texts, not a text.': () =>
    keys.issue(wrong({ ...newKey, scopes: 'read:profiles' })),
  'keys.issue: environment must be live or test, not "prod".': () =>
    keys.issue(wrong({ ...newKey, environment: 'prod' })),
  'keys.issue: environment must be live or test, not nothing.': () =>
    keys.issue(wrong({ partner: PARTNER, name: 'Plugin' })),
  'The name must be a text, not nothing.': () => keys.issue(wrong({ partner: PARTNER, environment: 'live' })),
  'There is no partner nothing.': () => keys.issue(wrong({ name: 'Plugin', environment: 'live' })),
  'keys.issue: owner must be a text or null, not 5.': () => keys.issue(wrong({ ...newKey, owner: 5 })),
  'keys.issue: tags must be a list of texts or null, not a text.': () =>
    keys.issue(wrong({ ...newKey, tags: 'gold' })),
  'keys.update: allow must be a list of texts, not null.': () => keys.update(key.id, wrong({ allow: null })),
  'limits: set must be an object, not 5.': () => keys.update(key.id, { limits: wrong({ set: 5 }) }),
  'limits: clear must be a list of texts, not a text.': () =>
    keys.update(key.id, { limits: wrong({ clear: 'key' }) }),
  'keys.list: environment must be live or test, not "prod".': async () => {
    for await (const { id } of keys.list(wrong({ environment: 'prod' }))) return id
  },
  'keys.list: states must be a list of texts, not a text.': async () => {
    for await (const { id } of keys.list(wrong({ states: 'active' }))) return id
  },
  'The scopes must be a list of texts, not a text.': () => keys.grant(key.id, 'read:profiles' as never),
  'There is no key with the id nothing.': () => keys.show(undefined as never),
  'The modules must be a list of texts, not a text.': () => partners.activate(PARTNER, 'profiles' as never),
  'A slug must be 1–80 of a-z, 0-9 and -, a letter or digit first, not nothing.': () =>
    partners.create(wrong({ name: 'Beta', modules: [] })),
  'The modules must be a list of texts, not undefined.': () =>
    partners.create(wrong({ slug: 'beta', name: 'Beta' })),
  'partners.list: the tag must be a text, not 5.': () => partners.list(5 as never),
  'modules.define: scope must be a text, not undefined.': () =>
    modules.define(wrong({ name: 'x', feature: 'X' })),
  'The administration: the store is a promise; await it first.': () =>
    createKeyAdministration(openSqliteStore(':memory:') as never, operator),
  'The administration: the store must be an object, not undefined.': () =>
    createPartnerAdministration(undefined as never, operator),
  'createClaim: the store is a promise; await it first.': () =>
    createClaim(openSqliteStore(':memory:') as never, operator, newKey, 60_000),
  'importContent: the store is a promise; await it first.': () =>
    importContent(openSqliteStore(':memory:') as never, 'plans', [], { ...operator, now: 0 }),
  'startWebhooks: the store is a promise; await it first.': () =>
    startWebhooks(openSqliteStore(':memory:') as never, {}),
  'awaitReceipt: the store is a promise; await it first.': () =>
    awaitReceipt(openSqliteStore(':memory:') as never),
  'The name of an operator must be a text, not nothing.': () => createKeyAdministration(store, wrong({})),
  'The operator: clock must be a function, not 5.': () =>
    createKeyAdministration(store, wrong({ ...operator, clock: 5 })),
  'createClaim: the request must be an object, not undefined.': () =>
    createClaim(store, operator, undefined as never, 60_000),
  'importKeys: the lines must be a list, or another iterable, of texts, not a text.': () =>
    importKeys(store, '{}' as never, operator),
  'importKeys: secret must be a Uint8Array, not a list.': () =>
    importKeys(store, [], operator, wrong({ secret: [] })),
  'importContent: the kind must be one of profiles, industries, plans, banners, not "plan".': () =>
    importContent(store, 'plan' as never, [], { ...operator, now: 0 }),
  'importContent: the lines must be a list, or another iterable, of texts, not a text.': () =>
    importContent(store, 'plans', '{}' as never, { ...operator, now: 0 }),
  'Line 1 must be a text, not an object.': () =>
    importContent(store, 'plans', [{}] as never, { ...operator, now: 0 }),
  'importContent: dryRun must be true or false, not a text.': () =>
    importContent(store, 'plans', [], wrong({ ...operator, now: 0, dryRun: 'no' })),
  'createPartnerApi: log must be a function, not an object.': () =>
    createPartnerApi({ store }, wrong({ log: console })),
  'createPartnerApi: allowBrowsers must be true or false, not a text.': () =>
    createPartnerApi({ store }, wrong({ allowBrowsers: 'false' })),
  'createPartnerApi: replicaName must be a text, not 5.': () =>
    createPartnerApi({ store }, wrong({ replicaName: 5 })),
  'createPartnerApi: observers must be a list, not an object.': () =>
    createPartnerApi({ store }, wrong({ observers: metrics.observer })),
  'createPartnerApi: observers[1] must be an object with methods such as requestCompleted; of metrics, pass metrics.observer.':
    () => createPartnerApi({ store }, { observers: [metrics.observer, wrong(metrics)] }),
  'createPartnerApi: endpoints must be a list, not an object.': () =>
    createPartnerApi({ store }, wrong({ endpoints: { ...endpoint, handle } })),
  'createPartnerApi: endpoints[1] must be what defineEndpoint returned, not an object.': () =>
    createPartnerApi({ store }, {
      endpoints: [defineEndpoint({ ...endpoint, handle }), wrong({ ...endpoint, handle })],
    }),
  'createPartnerApi: the options must be an object, not a list.': () =>
    createPartnerApi({ store }, wrong([])),
  'deployment: title must be a text, not 5.': () =>
    createPartnerApi({ store }, { deployment: wrong({ title: 5 }) }),
  'deployment: servers must be a list, not a text.': () =>
    createPartnerApi({ store }, { deployment: wrong({ servers: '/' }) }),
  'defineEndpoint: path must be a text, not null.': () =>
    defineEndpoint(wrong({ ...endpoint, handle, path: null })),
  'defineEndpoint: query must be an object, not a text.': () =>
    defineEndpoint(wrong({ ...endpoint, handle, query: 'state' })),
  'defineEndpoint: revision must be a function, not a text.': () =>
    defineEndpoint(wrong({ ...endpoint, handle, revision: '1' })),
  'The endpoint x: query must be schemas by name, not a schema.': () =>
    defineEndpoint(wrong({ ...endpoint, handle, query: v.object({}) })),
  'The endpoint x: its status must be 201, not 202.': () =>
    defineEndpoint(wrong({ ...endpoint, method: 'POST', handle, status: 202 })),
  'The endpoint undefined: its name must be 1–40 of a-z, 0-9 and -.': () =>
    api.protect(wrong({ ...endpoint, name: undefined }), () => new Response()),
  'The endpoint x: its summary must be a text.': () =>
    api.protect(wrong({ ...endpoint, summary: undefined }), () => new Response()),
  'The endpoint x: handle must be a function, not an object.': () =>
    defineEndpoint(wrong({ ...endpoint, handle: {} })),
  'The endpoint x: its handler must be a function, not undefined.': () =>
    api.protect(endpoint, undefined as never),
  'protect: name must be a text, not null.': () =>
    api.protect(wrong({ ...endpoint, name: null }), () => new Response()),
  'Problem: detail must be a text, not 5.': () => new Problem('conflict', wrong({ detail: 5 })),
  'createGuard: address must be a function, not a text.': () =>
    createGuard(api, endpoint, wrong({ address: '10.0.0.1' })),
  'createListener: this is no service. Pass what createPartnerApi returned; await it first.': () =>
    createListener(Promise.resolve(api) as never),
  'serve: host must be a text, not 5.': () => serve(api, wrong({ host: 5 })),
  'createWorker: the first argument must be a function, not an object.': () => createWorker(api as never),
  'createWorker: trustConnectingIp must be true or false, not a text.': () =>
    createWorker(() => api, wrong({ trustConnectingIp: 'false' })),
  'openSqliteStore: the file must be a text, not undefined.': () => openSqliteStore(undefined as never),
  'openSqliteStore: readOnly must be true or false, not a text.': () =>
    openSqliteStore(newFile(), wrong({ readOnly: 'no' })),
  'openPostgresStore: the URL must be a text, not undefined.': () => openPostgresStore(undefined as never),
  'openPostgresStore: migrate must be true or false, not a text.': () =>
    openPostgresStore('postgres://127.0.0.1:9/x', wrong({ migrate: 'no' })),
  'createWebhookAdministration: key must be what importWebhookKey returned; await it first.': () =>
    createWebhookAdministration(store, operator, wrong({ key: Promise.resolve() })),
  'webhooks.create: events must be a list of texts, not a text.': () =>
    webhooks.create(wrong({ url: 'https://hooks.example', events: 'key.issued' })),
  'The events of a webhook must be a list of texts, not undefined.': () =>
    webhooks.create(wrong({ url: 'https://hooks.example' })),
  'startWebhooks: allowPrivate must be true or false, not a text.': () =>
    startWebhooks(store, wrong({ allowPrivate: 'false' })),
  'The key for the secrets of webhooks must be a text, not undefined.': () =>
    importWebhookKey(undefined as never),
  'createMetrics: by must be "partner", not "key".': () => createMetrics(wrong({ by: 'key' })),
  'createTracing: databaseSystem must be a text, not 5.': () => createTracing(wrong({ databaseSystem: 5 })),
  'directoryOf: the rows must be a list, not an object.': () => directoryOf({} as never),
  'rotateKey: store must be a function, not undefined.': async () => await client.rotateKey(wrong({})),
  'createPartnerClient: fetch must be a function, not an object.': () =>
    createPartnerClient(wrong({ url: 'http://127.0.0.1:9', key: 'k', partner: PARTNER, fetch: {} })),
  'createCachingFetch: cache must have the methods get and set, as a Map has.': () =>
    createCachingFetch({} as never),
  'createCachingFetch: send must be a function, not an object.': () =>
    createCachingFetch(new Map(), api as never),
  'body must be the text or the bytes as they arrived: verify it before a parser reads it.': () =>
    verifyWebhook('whsec_AAAA', {}, {} as never),
  'headers must be an object, not undefined.': () => verifyWebhook('whsec_AAAA', undefined as never, ''),
  'directory: there is no method listProfiles.': () => checkDirectory({} as never),
  'The request: query must be an object, not 5.': async () => await client.profiles(5 as never),
}

for (const [message, call] of Object.entries(misuses)) {
  t.test(message, async (t) => {
    await t.rejects(async () => await call(), { name: /^(?:Type|Range|Admin)Error$/, message })
  })
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
    t.throws(refuse, { name: 'TypeError', message: /^\w+: the options must be an object, not .+\.$/ })
  }
  // A key in the wrong place is not repeated.
  await t.rejects(keys.issue('secret' as never), {
    message: 'keys.issue: the options must be an object, not a text.',
  })
})

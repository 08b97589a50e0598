/** Deliveries: signatures, addresses, retries, and webhooks that fail. */
import { spawn } from 'node:child_process'
import dns from 'node:dns'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { Webhook as Verifier } from 'standardwebhooks'
import t from 'tap'
import type { Test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { measureWebhooks } from '../../adapters/metrics.ts'
import { createLookup, isPublicUrl } from '../../adapters/webhooks/addresses.ts'
import {
  importWebhookKey,
  type RunningWebhooks,
  startWebhooks,
  type WebhookOptions,
} from '../../adapters/webhooks/deliverer.ts'
import { createWebhookSender } from '../../adapters/webhooks/sender.ts'
import type { LogEvent } from '../../core/log.ts'
import { delay } from '../../core/lib/promise.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Delivery, Webhook } from '../../core/ports/webhooks.ts'
import {
  cleanEnv,
  documentOf,
  newFile,
  runProgram,
  startServing,
  temporaryFolder,
} from '../support/cli-program.ts'
import { createPartner, PARTNER } from '../support/partner.ts'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { startReceiver, typeOf } from '../support/webhook-receiver.ts'

const folder = temporaryFolder()
const text = Buffer.alloc(32, 1).toString('base64')
const key = await importWebhookKey(text)

/** The program with the key, on a new store. */
function programOn(file: string) {
  const env = { PARTNER_API_STORE: `sqlite:${join(folder, file)}`, PARTNER_API_WEBHOOK_KEY: text }
  return {
    env,
    run: (...args: string[]) => runProgram(args, { env }),
    async json(...args: string[]) {
      const ended = await runProgram([...args, '--json'], { env })
      return { ...ended, ...documentOf(ended) }
    },
  }
}

const secret = `whsec_${Buffer.alloc(32, 2).toString('base64')}`

let count = 0
/** Adds a webhook for all events of keys to a store. */
async function addWebhook(store: Store, url: string, more: Partial<Webhook> = {}): Promise<string> {
  const id = `whk_${String(++count).padStart(20, '0')}`
  const secrets = [{ sealed: await key.seal(secret, id), expiresAt: undefined }]
  const fixed = { id, url, secrets, partner: undefined, createdAt: Date.now(), failingSince: undefined }
  await change(store, id, 'created', () => ({ ...fixed, events: ['key.issued'], state: 'active', ...more }))
  return id
}

async function change(
  store: Store,
  id: string,
  what: 'created' | 'disabled' | 'rotated' | 'removed',
  apply: (webhook: Webhook) => Webhook | undefined,
  at: number = Date.now(),
): Promise<void> {
  await store.webhooks.changeWebhook(id, `webhook.${what}`, { actor: 'test', at }, (found) => apply(found!))
}

const disable = (store: Store, id: string, at?: number) =>
  change(store, id, 'disabled', (webhook) => ({ ...webhook, state: 'disabled' }), at)

/** Enqueues deliveries. @returns Their ids. */
async function enqueue(store: Store, webhook: string, deliveries = 1): Promise<string[]> {
  const events = Array.from({ length: deliveries }, () => {
    const id = `msg_${String(++count).padStart(20, '0')}`
    const payload = `{"n":${count}}`
    return { id, type: 'webhook.test', partner: undefined, createdAt: Date.now(), payload } as const
  })
  await store.webhooks.enqueue(events, webhook)
  return events.map(({ id }) => id)
}

/** Receives webhooks until the end of the test. */
async function receive(t: Test, ...respond: Parameters<typeof startReceiver>) {
  const receiver = await startReceiver(...respond)
  t.teardown(receiver.close)
  return receiver
}

/** Starts deliveries that end with the test. */
function deliver(t: Test, store: Store, options: WebhookOptions = {}) {
  const events: LogEvent[] = []
  const webhooks = startWebhooks(store, {
    key,
    allowPrivate: true,
    log: (event) => events.push(event),
    ...options,
  })
  t.teardown(() => webhooks.close(0))
  return { events, webhooks }
}

/** Resolves names with `resolve4` until the end of the test. */
function resolveWith(t: Test, resolve4: (name: string) => Promise<string[]>): void {
  const { Resolver } = dns.promises
  const resolve6 = () => Promise.reject(Object.assign(new Error('none'), { code: 'ENODATA' }))
  dns.promises.Resolver = class extends Resolver {
    override resolve4 = resolve4 as unknown as typeof Resolver.prototype.resolve4
    override resolve6 = resolve6 as unknown as typeof Resolver.prototype.resolve6
  }
  t.teardown(() => dns.promises.Resolver = Resolver)
}

async function deliveryOf(store: Store, webhook: string): Promise<Delivery> {
  return (await store.webhooks.listDeliveries(webhook, undefined, undefined, 1))[0]!
}

async function valueOf(metric: string, store: Store, webhooks: RunningWebhooks): Promise<number> {
  return (await measureWebhooks(store, webhooks)).find(({ name }) => name === metric)!.values[0]!.value
}

/** The delivery after its first attempts. */
async function attempted(store: Store, webhook: string, attempts: number = 1): Promise<Delivery> {
  await until(async () => (await deliveryOf(store, webhook)).attempts >= attempts, 'an attempt')
  return await deliveryOf(store, webhook)
}

await t.test('the official library verifies deliveries, with both secrets during a rotation', async (t) => {
  const { run, json } = programOn('verify.db')
  const receiver = await receive(t)
  await run('partners', 'create', 'acme', '--name', 'Ácme')
  const environment = ['--url', receiver.url, '--event', 'key.issued', '--allow-private']
  const { data: { id, secret: first } } = await json('webhooks', 'create', ...environment)
  t.match(first, /^whsec_[\w+/]{43}=$/)
  const store = await openSqliteStore(join(folder, 'verify.db'))
  t.teardown(() => store.close())
  deliver(t, store)
  await run('keys', 'issue', 'acme', '--name', 'Schlüssel', '--quiet')
  const { headers, body } = await receiver.delivery((each) => typeOf(each) === 'key.issued')
  const verify = (secret: string, { headers, body }: typeof receiver.received[number]) =>
    new Verifier(secret).verify(body, headers as Record<string, string>)
  t.match(verify(first, { headers, body, path: '' }), { type: 'key.issued', data: { name: 'Schlüssel' } })
  t.match(headers, { 'content-type': 'application/json', 'webhook-id': /^msg_\w{20}$/ })
  t.throws(() => verify(first, { headers, body: `${body} `, path: '' }), 'another body')

  const { data: { secret: second } } = await json('webhooks', 'rotate-secret', id)
  await json('webhooks', 'test', id, '--allow-private')
  const rotated = receiver.received.at(-1)!
  t.equal(typeOf(rotated), 'webhook.test')
  for (const each of [first, second]) t.match(verify(each, rotated), { type: 'webhook.test' })
  const { data: { secret: third } } = await json('webhooks', 'rotate-secret', id, '--overlap', '0')
  await json('webhooks', 'test', id, '--allow-private')
  const last = receiver.received.at(-1)!
  t.ok(verify(third, last))
  for (const old of [first, second]) t.throws(() => verify(old, last))
})

await t.test('the example of a receiver verifies deliveries', async (t) => {
  const place = join(folder, 'receiver')
  mkdirSync(place)
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(place, 'node_modules'))
  const example = new URL('../../examples/webhook-receiver.js', import.meta.url)
  writeFileSync(join(place, 'receiver.mjs'), readFileSync(example))
  const { json, run } = programOn('example.db')
  await run('migrate')
  const PORT = String(await freePort())
  const options = ['--event', 'signup.created', '--allow-private']
  const { data } = await json('webhooks', 'create', '--url', `http://127.0.0.1:${PORT}/`, ...options)
  const receiver = spawn(process.execPath, ['receiver.mjs'], {
    cwd: place,
    env: cleanEnv({ PORT, WEBHOOK_SECRET: data.secret }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => receiver.kill())
  const test = () => json('webhooks', 'test', data.id, '--allow-private')
  await until(async () => (await test()).code === 0, 'the receiver')
  t.match(String((await once(receiver.stdout, 'data'))[0]), 'webhook.test')
  await run('webhooks', 'rotate-secret', data.id, '--overlap', '0')
  t.match((await test()).error, { code: 'not_delivered', status: 400 })
})

t.test('private addresses are recognised', (t) => {
  const refused =
    `127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1
    100.127.255.255 0.0.0.0 224.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 255.255.255.255 2130706433 0x7f.1 017700000001
    localhost LOCALHOST hook.localhost localhost. [::1] [::] [fe80::1] [fc00::1] [fd12::1] [ff02::1] [::ffff:127.0.0.1]
    [::ffff:a9fe:a9fe] [64:ff9b::7f00:1] [64:ff9b::169.254.169.254] [2002:7f00:1::] [2002:a9fe:a9fe::1] [::127.0.0.1]
    [fec0::1] [2001::1] [64:ff9b:1::1] [3fff::1]`
  const accepted = '93.184.216.34 [2606:2800:220:1::1] [64:ff9b::5db8:d822] hook.example localhost.example'
  const isPublic = (host: string) => isPublicUrl(new URL(`https://${host}/`))
  t.same(refused.split(/\s+/).filter(isPublic), [])
  t.same(accepted.split(' ').filter((host) => !isPublic(host)), [])
  t.end()
})

await t.test('the address is checked when the connection is made', async (t) => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A resolver whose answers are for one query: first a public address, then this machine.
  const answers = ['93.184.216.34']
  const resolver = createSocket('udp4')
  resolver.on('message', (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5
    const isIPv4 = query.readUInt16BE(end - 4) === 1
    const bytes = Buffer.from((answers.shift() ?? '127.0.0.1').split('.').map(Number))
    const head = Buffer.from([...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIPv4 ? 1 : 0, 0, 0, 0, 0])
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...bytes])
    resolver.send(Buffer.concat([head, query.subarray(12, end), ...(isIPv4 ? [answer] : [])]), port, address)
  })
  resolver.bind(0, '127.0.0.1')
  await once(resolver, 'listening')
  const client = new dns.promises.Resolver()
  client.setServers([`127.0.0.1:${resolver.address().port}`])
  resolveWith(t, (name) => client.resolve4(name))
  t.teardown(() => {
    resolver.close()
    server.close()
  })
  const url = `https://hook.example:${(server.address() as AddressInfo).port}/`
  const found = await client.resolve4('hook.example')
  t.same(found, ['93.184.216.34'], 'it was public when it was checked first')

  const store = await openMemoryStore()
  const webhook = await addWebhook(store, url)
  await enqueue(store, webhook)
  deliver(t, store, { allowPrivate: false })
  t.match(await attempted(store, webhook), { state: 'pending', lastError: /private/, lastStatus: undefined })
  t.equal(connections, 0)

  const trusting = await openMemoryStore()
  const same = await addWebhook(trusting, url)
  await enqueue(trusting, same)
  deliver(t, trusting)
  await attempted(trusting, same)
  t.equal(connections, 1, 'without the check it connects')
})

await t.test('a failed delivery is retried by the schedule', async (t) => {
  const store = await openMemoryStore()
  const statuses: Record<string, number> = { '/gone': 410, '/busy': 429, '/moved': 302, '/broken': 500 }
  const other = await receive(t)
  const receiver = await receive(t, (response, { path }) => {
    if (path === '/endless') return void setInterval(() => response.write('x'.repeat(1_000)), 1).unref()
    if (path === '/silent') return
    response.writeHead(statuses[path]!, { 'retry-after': '120', location: other.url }).end()
  })
  const webhooks: Record<string, string> = {}
  for (const path of ['/silent', '/endless', ...Object.keys(statuses)]) {
    webhooks[path] = await addWebhook(store, receiver.url + path)
    await enqueue(store, webhooks[path])
  }
  const { events } = deliver(t, store)
  const start = Date.now()
  await until(
    async () => (await deliveryOf(store, webhooks['/endless']!)).state === 'delivered',
    'the endless one',
  )
  const broken = await attempted(store, webhooks['/broken']!)
  t.match(broken, { state: 'pending', attempts: 1, lastStatus: 500 })
  t.ok(broken.dueAt >= start + 5_000 && broken.dueAt < Date.now() + 5_600, 'after five seconds')
  t.match(await attempted(store, webhooks['/moved']!), { state: 'pending', lastStatus: 302 })
  t.equal(other.received.length, 0, 'a redirect is not followed')
  t.ok((await attempted(store, webhooks['/busy']!)).dueAt >= start + 120_000, 'after Retry-After')
  t.match(await attempted(store, webhooks['/gone']!), { state: 'failed', lastStatus: 410 })
  await until(() => events.some(({ event }) => event === 'webhook_disabled'), 'the event')
  t.match(events.find(({ event }) => event === 'webhook_disabled'), {
    level: 'warn',
    webhook: webhooks['/gone'],
  })
  const all = await store.webhooks.listWebhooks()
  t.same(all.filter(({ state }) => state === 'disabled').map(({ id }) => id), [webhooks['/gone']])
})

await t.test('a webhook that fails for five days is disabled', async (t) => {
  const store = await openMemoryStore()
  const receiver = await receive(t, (response) => response.writeHead(500).end())
  const failingSince = Date.now() - 5 * MS_PER_DAY
  const old = await addWebhook(store, receiver.url, { failingSince })
  const young = await addWebhook(store, receiver.url, { failingSince: failingSince + 60_000 })
  await enqueue(store, old)
  await enqueue(store, young)
  const { events, webhooks } = deliver(t, store)
  await attempted(store, young)
  await attempted(store, old)
  t.equal(await valueOf('partner_api_webhooks_failing', store, webhooks), 2, 'both')
  const states = (await store.webhooks.listWebhooks()).map(({ id, state }) => [id, state])
  t.same(Object.fromEntries(states), { [old]: 'disabled', [young]: 'active' })
  t.match(events, [{ event: 'webhook_disabled', webhook: old, error: 'status 500' }])
})

await t.test('a receiver that does not respond delays no other', async (t) => {
  const store = await openMemoryStore()
  const silent = await receive(t, () => {})
  const receiver = await receive(t)
  const dead = await addWebhook(store, silent.url)
  const unresolved = await addWebhook(store, 'http://hook.example/')
  let lookups = 0
  resolveWith(t, () => {
    lookups++
    return new Promise(() => {})
  })
  await enqueue(store, unresolved, 50)
  const live = await addWebhook(store, receiver.url)
  await enqueue(store, dead, 200)
  const sent = await enqueue(store, live, 200)
  const { webhooks } = deliver(t, store)
  const ids = () => receiver.received.map(({ headers }) => headers['webhook-id'])
  await until(() => ids().length === sent.length, 'all deliveries')
  t.same(ids().sort(), sent.sort(), 'each delivery arrives once')
  await until(() => webhooks.outcomes.delivered === sent.length, 'their outcomes')
  t.ok(silent.received.length <= 50)
  t.equal(lookups, 1, 'a name is resolved once at a time')
  silent.close()
})

/** The store, and the sizes of its leases by webhook. */
function countLeases(store: Store) {
  const leases = new Map<string, number[]>()
  const leaseDeliveries: NonNullable<Store['webhooks']>['leaseDeliveries'] = (id, limit, leaseMs) => {
    leases.set(id, [...leases.get(id) ?? [], limit])
    return store.webhooks.leaseDeliveries(id, limit, leaseMs)
  }
  return { leases, store: { ...store, webhooks: { ...store.webhooks, leaseDeliveries } } }
}

await t.test('a webhook that is failing is attempted in turn, once a poll, until one succeeds', async (t) => {
  const { store, leases } = countLeases(await openMemoryStore())
  const receiver = await receive(
    t,
    (response) => response.writeHead(receiver.received.length < 3 ? 500 : 204).end(),
  )
  const webhook = await addWebhook(store, receiver.url, { failingSince: Date.now() })
  await enqueue(store, webhook, 50)
  const { webhooks } = deliver(t, store)
  await until(() => webhooks.outcomes.delivered === 48, 'all deliveries')
  t.same([leases.get(webhook)!.slice(0, 4), webhooks.outcomes.retried], [[1, 1, 1, 25], 2])
})

await t.test('slow receivers delay no other, not even at the same origin', async (t) => {
  const { store, leases } = countLeases(await openMemoryStore())
  const receiver = await receive(t, (response, { path }) => path === '/slow' || response.writeHead(204).end())
  const slow: string[] = []
  for (let n = 0; n < 20; n++) {
    slow.push(await addWebhook(store, `${receiver.url}/slow`))
    await enqueue(store, slow[n]!, 50)
  }
  const live = await addWebhook(store, `${receiver.url}/live`)
  await enqueue(store, live, 100)
  const { webhooks } = deliver(t, store)
  await until(() => webhooks.outcomes.delivered === 100, 'all deliveries of the other')
  t.same(slow.map((id) => leases.get(id)), slow.map(() => [3]), 'few attempts until one has succeeded fast')
  t.ok(leases.get(live)!.includes(25))
})

await t.test('a webhook that was disabled is not called, not even for deliveries that are leased', async (t) => {
  const store = await openMemoryStore()
  const receiver = await receive(t)
  const released = Promise.withResolvers<string[]>()
  const names = new Set<string>()
  resolveWith(t, (name) => {
    names.add(name)
    return released.promise
  })
  const gone = await addWebhook(store, receiver.url.replace('127.0.0.1', 'gone.example'))
  const active = await addWebhook(store, receiver.url.replace('127.0.0.1', 'active.example'))
  for (const id of [gone, active]) await enqueue(store, id)
  let lists = 0
  const listWebhooks = () => (lists++, store.webhooks.listWebhooks())
  const counting = { ...store, webhooks: { ...store.webhooks, listWebhooks } }
  const { webhooks } = deliver(t, counting, { maxStalenessMs: 0 })
  await until(() => names.size === 2, 'both look-ups')
  await disable(store, gone)
  lists = 0
  await until(() => lists >= 2, 'a list that was read after the change')
  released.resolve(['127.0.0.1'])
  await until(() => webhooks.outcomes.delivered === 1, 'the delivery of the other')
  await webhooks.close()
  t.same(receiver.received.map(({ headers }) => headers.host?.split(':')[0]), ['active.example'])
  t.match(await deliveryOf(store, gone), { state: 'pending', attempts: 0 })
})

await t.test('a store that takes longer than the max staleness is logged', async (t) => {
  const store = await openMemoryStore()
  await enqueue(store, await addWebhook(store, 'https://hook.example'))
  const listWebhooks = async () => (await delay(600), store.webhooks.listWebhooks())
  const { events } = deliver(t, { ...store, webhooks: { ...store.webhooks, listWebhooks } }, {
    maxStalenessMs: 0,
  })
  await until(() => events.length > 0, 'the event')
  t.match(events, [{ event: 'webhooks_unavailable', error: /longer than --max-staleness/ }])
})

await t.test('informational responses are bounded', async (t) => {
  const one = (bytes: number) => `HTTP/1.1 103 Early Hints\r\nlink: ${'x'.repeat(bytes)}\r\n\r\n`
  const final = 'HTTP/1.1 204 No Content\r\n\r\n'
  const refused = /too many informational/
  const delivered = { status: 204 }
  const cases = [
    ['ten', one(10).repeat(10) + final, delivered],
    ['eleven', one(10).repeat(11) + final, { error: refused }],
    ['large ones', one(15_000).repeat(5) + final, { error: refused }],
    ['those without end', one(10).repeat(1_000), { error: refused }],
  ] as const
  for (const [name, text, expected] of cases) {
    const server = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.write(text))
      if (!text.endsWith(final)) socket.on('drain', () => socket.write(text))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const sender = createWebhookSender(true)
    const { port } = server.address() as AddressInfo
    t.match(await sender.send(`http://127.0.0.1:${port}/`, [secret], 'msg_1', '{}'), expected, name)
    await sender.close()
    server.close()
  }
})

await t.test('names in the hosts file, and names without allowed addresses', async (t) => {
  resolveWith(
    t,
    (name) => Promise.resolve(name === 'mixed.example' ? ['10.0.0.1', '93.184.216.34'] : ['10.0.0.1']),
  )
  const lookup = createLookup((address) => !address.startsWith('10.'), () => new Error('refused'))
  const find = (name: string) =>
    new Promise((resolve) => lookup(name, { all: true }, (error, found) => resolve(error?.message ?? found)))
  t.same(await find('mixed.example'), [{ address: '93.184.216.34', family: 4 }])
  t.equal(await find('private.example'), 'refused')
  t.match(await find('localhost'), [{ address: /^(?:127\.0\.0\.1|::1)$/ }])
})

await t.test('the removal of deliveries that waited for a disabled webhook is logged', async (t) => {
  const store = await openMemoryStore()
  const webhook = await addWebhook(store, 'https://hook.example')
  await enqueue(store, webhook, 3)
  await disable(store, webhook, Date.now() - 30 * MS_PER_DAY)
  const { events } = deliver(t, store)
  await until(() => events.length > 0, 'the event')
  t.match(events, [{ level: 'warn', event: 'webhook_deliveries_removed', webhook, deliveries: 3 }])
})

await t.test('deliveries of a removed webhook are deleted, also without another webhook', async (t) => {
  const store = await openMemoryStore()
  const webhook = await addWebhook(store, 'https://hook.example')
  await enqueue(store, webhook)
  await change(store, webhook, 'removed', () => undefined)
  deliver(t, store, { key: undefined })
  await until(async () => await deliveryOf(store, webhook) === undefined, 'the deletion')
})

await t.test('a store that does not respond does not end metrics', async (t) => {
  const store = await openMemoryStore()
  const { webhooks } = deliver(t, store)
  await enqueue(store, await addWebhook(store, 'http://hook.example', { events: ['key.expiring'] }))
  const pending = (store: Store) => valueOf('partner_api_webhook_pending', store, webhooks)
  t.equal(await pending(store), 1)
  const listWebhooks = () => Promise.reject(new Error('The store is away.'))
  t.ok(Number.isNaN(await pending({ ...store, webhooks: { ...store.webhooks, listWebhooks } })))
})

await t.test('an event whose delivery a killed server had begun is delivered by another', async (t) => {
  const url = `sqlite:${newFile()}`
  const store = await openSqliteStore(url.slice('sqlite:'.length))
  t.teardown(() => store.close())
  const { text: partnerKey } = await (await createPartner(store)).issue()
  // The first delivery gets no answer: the server is killed while it waits.
  const receiver = await receive(
    t,
    (response) => receiver.received.length > 1 && response.writeHead(204).end(),
  )
  const webhook = await addWebhook(store, receiver.url, { events: ['signup.created'] })
  const env = { PARTNER_API_WEBHOOK_KEY: text }
  const served = await startServing(['serve', '--port', '0', '--allow-private-webhooks'], url, { env })
  t.teardown(() => served.child.kill('SIGKILL'))
  const { status } = await fetch(`${served.url}/service/partner/signups`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-partner-key': partnerKey },
    body: JSON.stringify({ partner: PARTNER, email: 'ada@mail.example', name: 'Ada' }),
  })
  t.equal(status, 201)
  const { headers } = await receiver.delivery()
  served.child.kill('SIGKILL')
  await served.ended
  t.match(await deliveryOf(store, webhook), { state: 'pending' })
  // The lease of the killed server ends now, not in 30 seconds.
  const { id } = await deliveryOf(store, webhook)
  await store.webhooks.settleDeliveries([
    { id, webhook, state: 'pending', retryMs: 0, lastStatus: undefined, lastError: undefined },
  ])
  deliver(t, store)
  await until(async () => (await deliveryOf(store, webhook)).state === 'delivered', 'the delivery')
  t.equal(receiver.received.length, 2)
  t.equal(receiver.received[1]!.headers['webhook-id'], headers['webhook-id'], 'receivers can tell')
})

await t.test('secrets that can not be opened are logged, and nothing is delivered', async (t) => {
  const store = await openMemoryStore()
  const receiver = await receive(t)
  const webhook = await addWebhook(store, receiver.url)
  await enqueue(store, webhook)
  for (const wrong of [undefined, await importWebhookKey(Buffer.alloc(32, 9).toString('base64'))]) {
    const { events } = deliver(t, store, { key: wrong })
    await until(() => events.length > 0, 'an event')
    t.match(events, [{
      level: 'error',
      event: 'webhooks_unavailable',
      error: wrong ? /another key/ : /no key/,
    }])
  }
  t.match(await deliveryOf(store, webhook), { state: 'pending', attempts: 0 })
  const moved = await store.webhooks.listWebhooks()
  await t.rejects(key.open(moved[0]!.secrets[0]!.sealed, 'whk_another'), 'a secret is bound to its webhook')
  const both = await importWebhookKey(`${Buffer.alloc(32, 9).toString('base64')}\n${text}\n`)
  deliver(t, store, { key: both })
  await receiver.delivery()
})

await t.test('without a log, what keeps all deliveries back is a line on the console', async (t) => {
  const store = await openMemoryStore()
  await enqueue(store, await addWebhook(store, 'https://192.0.2.1/'))
  const printed = Promise.withResolvers<string>()
  t.capture(console, 'error', printed.resolve)
  const webhooks = startWebhooks(store, {})
  t.match(JSON.parse(await printed.promise), {
    level: 'error',
    event: 'webhooks_unavailable',
    error: /no key/,
  })
  await webhooks.close()
})

await t.test('the key of an expired secret is not needed', async (t) => {
  const store = await openMemoryStore()
  const receiver = await receive(t)
  const id = await addWebhook(store, receiver.url)
  const expired = { sealed: 'by another key', expiresAt: Date.now() }
  await change(store, id, 'rotated', (webhook) => ({ ...webhook, secrets: [...webhook.secrets, expired] }))
  await enqueue(store, id)
  deliver(t, store)
  const { headers } = await receiver.delivery()
  t.match(headers['webhook-signature'], /^v1,[^ ]+$/)
})

await t.test('an empty key file, and another key, are refused', async (t) => {
  const { json, run } = programOn('empty.db')
  await run('migrate')
  const file = join(folder, 'empty.key')
  writeFileSync(file, '', { mode: 0o600 })
  const options = ['--url', 'https://hook.example', '--event', 'key.issued', '--webhook-key-file', file]
  t.match(await json('webhooks', 'create', ...options), { code: 2, error: { detail: /32 bytes in Base64/ } })
  const { data } = await json('webhooks', 'create', ...options.slice(0, 4))
  writeFileSync(file, Buffer.alloc(32, 9).toString('base64'))
  const tested = await json('webhooks', 'test', data.id, '--webhook-key-file', file)
  t.match(tested, { code: 2, error: { detail: /another key/ } })
})

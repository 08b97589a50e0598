/** Key lookups: the number of store reads, and the responses to bursts. */
import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { importKeys } from '../../core/admin/import-keys.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { internalsOf } from '../../core/internals.ts'
import { preparePrincipal } from '../../core/keys/principal.ts'
import { parseCidr } from '../../core/lib/ip-address.ts'
import { createLocalLimiter } from '../../core/limits/limiter.ts'
import { type KeyFacts, SCOPES } from '../../core/model.ts'
import type { QuotaStore } from '../../core/ports/quotas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { forge } from '../contract/http/forgery.ts'
import { FAR_LIMITS } from '../contract/http/service.ts'
import { key, partner } from '../contract/store/samples.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner } from '../support/partner.ts'

/** A partner with `count` keys, in a store that responds asynchronously, as over a network. */
async function createDeployment(count = 1) {
  const memory = await openMemoryStore()
  const { issue } = await createPartner(memory)
  const keys: string[] = []
  while (keys.length < count) keys.push((await issue()).text)
  const seen = { revisions: 0, lookUps: 0, underWay: 0, mostUnderWay: 0, isSilent: false }
  async function lookUp<T>(find: () => T): Promise<T> {
    seen.lookUps++
    seen.mostUnderWay = Math.max(seen.mostUnderWay, ++seen.underWay)
    await setImmediate()
    seen.underWay--
    if (seen.isSilent) throw new Error('unreachable')
    return find()
  }
  const store: Store = {
    ...memory,
    revision() {
      seen.revisions++
      return memory.revision()
    },
    findKey: async (id) => await lookUp(() => memory.findKey(id)),
    findImportedKey: async (text) => await lookUp(() => memory.findImportedKey(text)),
  }
  return { store, keys, seen, issue, importKey: () => importKey(memory) }
}

/** Imports a key of another system. */
async function importKey(store: Store) {
  const text = `sk_live_${randomBytes(24).toString('base64url')}`
  const line = JSON.stringify({ partner: 'acme', name: 'imported', digest: store.sha256(text.slice(8)) })
  const outcome = await importKeys(store, [line], { actor: 'test' }, {
    algorithm: 'sha256',
    prefix: 'sk_live_',
  })
  if ('errors' in outcome) throw new Error(JSON.stringify(outcome.errors))
  return { text, key: outcome.lines[0]!.key }
}

const limits = { ...FAR_LIMITS, authfail: { quota: 20, windowSeconds: 600 } }

function serve(store: Store, options: PartnerApiOptions = {}): PartnerApi {
  // A busy machine may take longer than the default time-out for a burst.
  return createPartnerApi({ store }, { limits, maxStalenessMs: 10_000, storeTimeoutMs: 60_000, ...options })
}

/** @param address `null` when the runtime does not know it. @returns The status. */
async function statusOf(api: PartnerApi, key: string, address: string | null = '192.0.2.1'): Promise<number> {
  const { status } = await api.handle({
    method: 'GET',
    target: '/service/public/plans?partner=acme',
    header: (name) => name === 'x-service-partner-key' ? key : undefined,
    body: () => new Uint8Array(),
    address: address ?? undefined,
  })
  return status
}

/** Sends concurrent requests. @returns The number of responses by status. */
async function sendAtOnce(
  api: PartnerApi,
  keys: readonly string[],
  address?: string | null,
): Promise<Record<number, number>> {
  const statuses = await Promise.all(keys.map((key) => statusOf(api, key, address)))
  const counts: Record<number, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

const forged = (count: number) =>
  Array.from({ length: count }, (_, n) => forge('spk_live', `Nobody${String(n).padStart(6, '0')}`))

await t.test('of concurrent forged keys, only the quota of failures is looked up', async (t) => {
  const { store, keys, seen } = await createDeployment(2)
  const api = serve(store, { maxStalenessMs: 0 })
  t.equal(await statusOf(api, keys[0]!), 200)
  seen.lookUps = 0
  t.strictSame(await sendAtOnce(api, forged(2_000)), { 401: 20, 429: 1_980 })
  t.equal(seen.lookUps, 20)
  t.strictSame(await sendAtOnce(api, forged(3), '192.0.2.2'), { 401: 3 }, 'another address is not limited')
  t.equal(await statusOf(api, keys[0]!), 200, 'a known key passes')
  seen.revisions = 0
  t.equal(await statusOf(api, keys[1]!), 429, 'an unknown key is limited')
  t.equal(seen.revisions, 0, 'the store is not read')
})

await t.test('concurrent requests with one forged key cause one lookup, and each counts as a failure', async (t) => {
  const { store, seen } = await createDeployment()
  t.strictSame(await sendAtOnce(serve(store), Array(400).fill(forged(1)[0])), { 401: 20, 429: 380 })
  t.equal(seen.lookUps, 1)
})

await t.test('a burst of valid, unused keys succeeds', async (t) => {
  const { store, keys, seen } = await createDeployment(100)
  const api = serve(store)
  t.strictSame(await sendAtOnce(api, Array(2_000).fill(keys[0])), { 200: 2_000 }, 'one key')
  t.equal(seen.lookUps, 1)
  t.strictSame(await sendAtOnce(api, keys), { 200: 100 }, 'many keys')
  t.equal(seen.lookUps, 100)
  t.equal(seen.mostUnderWay, 20)
  t.strictSame(await sendAtOnce(api, forged(30)), { 401: 20, 429: 10 }, 'the burst spent no failures')
})

await t.test('queued lookups fail when the store does not respond', async (t) => {
  const { store, keys, seen } = await createDeployment(50)
  const api = serve(store)
  seen.isSilent = true
  t.strictSame(await sendAtOnce(api, keys), { 503: 50 })
  t.equal(seen.lookUps, 20, 'queued lookups fail without a read')
  seen.isSilent = false
  t.strictSame(await sendAtOnce(api, keys), { 200: 50 }, 'later lookups succeed')
})

await t.test('replicas with a shared quota admit no more failures together', async (t) => {
  const { store, seen } = await createDeployment()
  const ledger = createLocalLimiter()
  const quotas: QuotaStore = {
    sharesLimits: true,
    leastWindowSeconds: 1,
    async leaseQuota({ policy: name, subject, quota, windowSeconds, wanted }) {
      await setImmediate()
      const policy = { name, quota, windowSeconds, field: '' }
      let granted = 0
      while (granted < wanted && ledger.consume(policy, subject, 0).allowed) granted++
      return { granted, remaining: ledger.peek(policy, subject, 0).remaining, resetMs: 600_000, term: 1 }
    },
    returnQuotas: () => undefined,
  }
  const replicas = [serve({ ...store, quotas }), serve({ ...store, quotas })]
  const [here, there] = await Promise.all(replicas.map((api) => sendAtOnce(api, forged(200))))
  t.equal(here![401]! + there![401]!, 20)
  t.equal(here![429]! + there![429]!, 380)
  t.ok(seen.lookUps <= 40, 'each replica looks up its quota at most')
})

await t.test('a wrong key causes the same lookups for an unknown, an unused and a used id', async (t) => {
  const { store, keys, seen, issue } = await createDeployment(2)
  const api = serve(store, { maxStalenessMs: 0, limits: FAR_LIMITS })
  t.equal(await statusOf(api, keys[0]!), 200)
  const idOf = (key: string) => key.slice(9, 21)
  const wrong = { unknown: 'Nobody000000', used: idOf(keys[0]!), unused: idOf(keys[1]!) }
  async function costs(): Promise<object> {
    const all: Record<string, number[]> = {}
    for (const [name, id] of Object.entries(wrong)) {
      const each: number[] = []
      for (const start of ['spk_live', 'spk_test', 'spk_live']) {
        seen.lookUps = 0
        t.equal(await statusOf(api, forge(start, id)), 401)
        each.push(seen.lookUps)
      }
      // Keeps the used key in the cache.
      if (name === 'used') t.equal(await statusOf(api, keys[0]!), 200)
      all[name] = each
    }
    return all
  }
  const once = [1, 0, 0]
  t.strictSame(await costs(), { unknown: once, used: once, unused: once })
  t.strictSame(await costs(), { unknown: [0, 0, 0], used: [0, 0, 0], unused: [0, 0, 0] })
  await issue()
  t.strictSame(await costs(), { unknown: once, used: once, unused: once }, 'after a change of facts')
  t.equal(await statusOf(api, keys[1]!), 200, 'a wrong key does not affect the valid key of its id')
})

await t.test('a look-up from before a change is not used after it', async (t) => {
  for (const method of ['findKey', 'findImportedKey'] as const) {
    const memory = await openMemoryStore()
    const { keys, issue } = await createPartner(memory)
    const { key: { id }, text } = method === 'findKey' ? await issue() : await importKey(memory)
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const find = async (sent: string) => {
      const found = await memory[method]!(sent)
      await answered
      return found
    }
    const api = serve({ ...memory, [method]: find }, { maxStalenessMs: 0 })
    const before = statusOf(api, text)
    await setImmediate()
    await keys.revoke(id)
    const after = statusOf(api, text)
    answer()
    t.strictSame(await Promise.all([before, after]), [200, 401], method)
  }
})

await t.test('a key that ends while its request waits is refused', async (t) => {
  const memory = await openMemoryStore()
  const { keys } = await createPartner(memory)
  const clocks = [Date, performance].map((clock) => ({ clock, now: clock.now }))
  const now = Date.now
  const issue = (expiresAt?: number) =>
    keys.issue({ partner: 'acme', name: 'short', environment: 'live', expiresAt })
  async function statusOf(store: Partial<Store>, key: string, more: Partial<HttpRequest> = {}) {
    const headers: Record<string, string> = {
      'x-service-partner-key': key,
      'content-type': 'application/json',
    }
    const { status } = await serve({ ...memory, ...store }, { maxStalenessMs: 0 }).handle({
      method: 'GET',
      target: '/service/public/plans?partner=acme',
      header: (name) => headers[name],
      body: () => new Uint8Array(),
      address: '192.0.2.1',
      ...more,
    })
    return status
  }

  const expiring = await issue(now() + 60_000)
  async function findKey(id: string) {
    await setImmediate()
    for (const { clock, now } of clocks) clock.now = () => now.call(clock) + 120_000
    return memory.findKey(id)
  }
  const ended = await statusOf({ findKey }, expiring.text)
  for (const { clock, now } of clocks) clock.now = now
  t.equal(ended, 401, 'its look-up')

  const leased = await issue()
  const quotas: QuotaStore = {
    sharesLimits: true,
    leastWindowSeconds: 1,
    async leaseQuota({ policy }) {
      if (policy === 'key') await keys.revoke(leased.key.id)
      return { granted: 1, remaining: 9, resetMs: 60_000, term: 1 }
    },
    returnQuotas: () => undefined,
  }
  t.equal(await statusOf({ quotas }, leased.text), 401, 'a lease')

  const posting = await issue()
  async function body() {
    await keys.revoke(posting.key.id)
    return new TextEncoder().encode('{"partner":"acme"}')
  }
  const target = '/service/developer/verify-key'
  t.equal(await statusOf({}, posting.text, { method: 'POST', target, body }), 401, 'its body')
})

const garbage = (count: number) =>
  Array.from({ length: count }, (_, n) => `sk_live_garbage-${String(n).padStart(32, '0')}`)

await t.test('text that is no key costs no look-up in a store without imported keys', async (t) => {
  const { store, keys, seen, issue } = await createDeployment()
  const unlimited = serve(store, { limits: FAR_LIMITS, maxStalenessMs: 0 })
  t.equal(await statusOf(unlimited, garbage(1)[0]!), 401)
  t.equal(seen.lookUps, 1, 'the first one learns that there are none')
  t.strictSame(await sendAtOnce(unlimited, garbage(500)), { 401: 500 })
  t.equal(seen.lookUps, 1)
  await issue()
  t.strictSame(await sendAtOnce(unlimited, garbage(3).slice(0, 1)), { 401: 1 })
  t.equal(seen.lookUps, 2, 'after a change of facts, it is learnt again')
  t.equal(await statusOf(unlimited, keys[0]!), 200)
})

await t.test('of 10,000 unknown keys from one address, only the quota of failures is looked up', async (t) => {
  const { store, seen, importKey } = await createDeployment()
  const { text, key } = await importKey()
  const api = serve(store, { maxStalenessMs: 0 })
  t.strictSame(await sendAtOnce(api, Array(400).fill(text)), { 200: 400 })
  t.equal(seen.lookUps, 1, 'of concurrent requests with one key')
  seen.lookUps = 0
  t.strictSame(await sendAtOnce(api, garbage(10_000)), { 401: 20, 429: 9_980 })
  t.equal(seen.lookUps, 20)
  const { limits } = await internalsOf(api).measurements()
  t.same(limits.authfail, { allowed: 20, refused: 9_980 }, 'those of a blocked address are counted, too')
  t.equal(await statusOf(api, text), 200, 'a known key passes')
  t.equal(await statusOf(api, (await importKey()).text), 429, 'an unknown key is limited')
  t.equal(await statusOf(api, text.toUpperCase(), '192.0.2.2'), 401)
  t.equal(await statusOf(api, text, '192.0.2.2'), 200)
  seen.lookUps = 0
  t.equal(await statusOf(api, text.toUpperCase(), '192.0.2.2'), 401)
  t.equal(await statusOf(api, text, '192.0.2.2'), 200)
  t.equal(seen.lookUps, 0, 'neither a refused nor a known key is looked up again')
  t.equal(key.hint, '')
})

await t.test('a key with the id of an imported one is refused', async (t) => {
  const { store, importKey } = await createDeployment()
  const { text, key } = await importKey()
  const api = serve(store)
  t.strictSame(await sendAtOnce(api, [forge('spk_live', key.id), text]), { 200: 1, 401: 1 })
})

await t.test('principals share only what is equal', (t) => {
  const limit = fc.record({ quota: fc.constantFrom(1, 2), windowSeconds: fc.constantFrom(1, 60) })
  const facts = fc.record({
    key: fc.record({
      id: fc.uuid(),
      scopes: fc.subarray(SCOPES.slice(0, 2)),
      allow: fc.subarray(['192.0.2.1/32', '2001:db8::/32']),
      limits: fc.record({ key: limit, signup: limit }, { requiredKeys: [] }),
    }).map(key),
    partner: fc.constantFrom('a', 'b').map((slug) => partner({ slug })),
  })
  const preparesEqual = (given: KeyFacts): boolean => {
    const { key, partner, heldScopes, allowedRanges } = preparePrincipal(given, {})
    const found = [key, partner, [...heldScopes], allowedRanges]
    const wanted = [given.key, given.partner, given.key.scopes, given.key.allow.map(parseCidr)]
    return JSON.stringify(found) === JSON.stringify(wanted)
  }
  t.doesNotThrow(() => fc.assert(fc.property(fc.array(facts), (all) => all.every(preparesEqual))))
  t.end()
})

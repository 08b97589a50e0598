/**
 * What `store restore` undoes: of random histories, the printed commands give the restored store the state of the replaced
 * one. `TAP_TIMEOUT=900 node test/cli/undone.test.ts HISTORIES` tries more of them.
 */
import { writeFileSync } from 'node:fs'
import process from 'node:process'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { MODULE_NAMES, SCOPES } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'
import { newFile, programOn } from '../support/cli-program.ts'

const histories = Number(process.argv[2] ?? 12)
const day = 86_400_000

/** mulberry32: a failed history is repeated by its seed. */
function createRandom(seed: number) {
  const next = () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)]!
  const some = <T>(values: readonly T[]): T[] => values.filter(() => next() < 0.4)
  return { next, pick, some }
}

/** Makes random changes, in five days. Those that are refused are none. */
async function change(
  store: Store,
  { next, pick, some }: ReturnType<typeof createRandom>,
  daysAgo: number,
  count: number,
) {
  let now = Date.now() - daysAgo * day
  const operator = { actor: 'trial', clock: () => now }
  const [partners, keys] = [
    createPartnerAdministration(store, operator),
    createKeyAdministration(store, operator),
  ]
  const limits = () =>
    pick([{}, { key: { quota: 5, windowSeconds: 60 } }, { signup: { quota: 0, windowSeconds: 60 } }])
  const limitChange = () => ({ set: limits(), clear: [] })
  for (let done = 0; done < count; done++) {
    now += Math.floor(next() * 5 * day / count)
    const slug = pick(['a', 'b', 'c'])
    const all = await Array.fromAsync(keys.list())
    const id = all.length > 0 ? pick(all).id : ''
    const webhooks = await store.webhooks!.listWebhooks()
    const hook = pick([...webhooks.map(({ id }) => id), `whk_${now}`])
    const url = `https://hooks.example/${Math.floor(next() * 3)}`
    const secrets = [{ sealed: String(next()), expiresAt: undefined }]
    const created: Webhook = {
      ...{ id: hook, url, events: ['signup.created'], partner: undefined, state: 'active', createdAt: now },
      ...{ secrets, failingSince: undefined },
    }
    const edit = (changes: Partial<Webhook>) => () =>
      store.webhooks!.changeWebhook(
        hook,
        'webhook.updated',
        { actor: 'trial', at: now },
        (was) => was ? { ...was, ...changes } : created,
      )
    const ends = () => pick([undefined, now + Math.floor(next() * 20 * day)])
    const changes: readonly (() => unknown)[] = [
      () => partners.create({ slug, name: slug, modules: some(MODULE_NAMES), limits: limits() }),
      () => partners.update(slug, { name: `It's ${Math.floor(next() * 9)}`, limits: limitChange() }),
      () => next() < 0.2 ? partners.remove(slug) : partners.suspend(slug),
      () => partners.resume(slug),
      () => partners.activate(slug, some(MODULE_NAMES)),
      () => partners.deactivate(slug, some(MODULE_NAMES)),
      ...Array(3).fill(() =>
        keys.issue({ partner: slug, name: '--k', environment: 'live', expiresAt: ends(), limits: limits() })
      ),
      () => keys.rotate(id, { overlapMs: pick([0, Math.floor(next() * 10 * day)]) }),
      () => keys.finishRotation(id),
      () => keys.update(id, { name: pick(['-x', 'y z']), expiresAt: ends() ?? null, limits: limitChange() }),
      () => keys.update(id, { allow: pick([[], ['192.0.2.0/24', '2001:db8::/32']]) }),
      () => keys.disable(id),
      () => keys.enable(id),
      () => next() < 0.3 && keys.revoke(id),
      () => keys.grant(id, [pick(SCOPES)]),
      () => keys.remove(id, [pick(SCOPES)]),
      edit({ url }),
      edit({ state: pick(['active', 'disabled']) }),
      edit({ secrets }),
      () =>
        store.webhooks!.changeWebhook(hook, 'webhook.removed', { actor: 'trial', at: now }, () => undefined),
    ]
    try {
      await pick(changes)()
    } catch (error) {
      if ((error as Error).name !== 'AdminError') throw error
    }
  }
}

/** What a request can observe of the records. An ended key is only that; secrets and ends cannot be repeated exactly. */
async function stateOf(file: string, now: number) {
  const store = await openSqliteStore(file, { readOnly: true })
  const operator = { actor: 'trial' }
  const partners = await Array.fromAsync(createPartnerAdministration(store, operator).list())
  const keys = await Array.fromAsync(createKeyAdministration(store, operator).list())
  const webhooks = await store.webhooks!.listWebhooks()
  store.close()
  const limitsOf = (limits: object) => Object.entries(limits).sort()
  return {
    partners: new Map(
      partners.filter(({ state }) => state !== 'removed').map((
        { createdAt: _, limits, ...rest },
      ) => [rest.slug, { ...rest, limits: limitsOf(limits) }]),
    ),
    keys: new Map(keys.map((key) => {
      const { id, name, scopes, allow, limits, expiresAt, retiresAt = 0 } = key
      const state = keyState(key, now)
      const isOver = state === 'revoked' || state === 'expired'
      const minutes = Math.round(retiresAt / 600_000)
      return [
        id,
        isOver ? { state } : { state, name, scopes, allow, limits: limitsOf(limits), expiresAt, minutes },
      ]
    })),
    webhooks: new Map(webhooks.map(({ id, url, events, state }) => [id, { url, events, state }])),
  }
}

test(`of ${histories} random histories, the list of a restore repeats what it undoes`, {
  timeout: histories * 10_000,
}, async (t) => {
  let [commands, failed] = [0, 0]
  for (let seed = 1; seed <= histories; seed++) {
    const file = newFile()
    const random = createRandom(seed)
    const { run, json } = programOn(`sqlite:${file}`)
    let store = await openSqliteStore(file)
    await change(store, random, 10, 120 * random.next())
    store.close()
    await run('store', 'backup', `${file}.backup`)
    store = await openSqliteStore(file)
    await change(store, random, 5, 120 * random.next())
    store.close()
    const keyFile = `${file}.webhook-key`
    writeFileSync(keyFile, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })

    const { data: { replaced, undone } } = await json('store', 'restore', `${file}.backup`, '--replace')
    const refused: string[] = []
    for (const command of undone.commands as string[]) {
      const args = parse(command).slice(1)
      if (args[1] === 'rotate-secret') args.push('--webhook-key-file', keyFile)
      const { code, stderr } = await run(...args)
      if (code !== 0) refused.push(`${command}: ${stderr}`)
      commands++
    }
    // An expiry in the past is repeated as one in a second.
    const now = Date.now() + 2_000
    const [expected, found] = [await stateOf(replaced, now), await stateOf(file, now)]
    const lost = new Set<string>(undone.lost)
    for (const id of [...expected.keys.keys(), ...expected.webhooks.keys()]) {
      const isKnown = found.keys.has(id) || found.webhooks.has(id)
      const isOver = ['expired', 'revoked'].includes(expected.keys.get(id)?.state ?? '')
      if (lost.has(id) || !isKnown && isOver) {
        for (const each of [expected, found]) [each.keys, each.webhooks].forEach((rows) => rows.delete(id))
      }
    }
    // Successors that the commands have made.
    for (const id of found.keys.keys()) if (!expected.keys.has(id)) found.keys.delete(id)
    if (!t.strictSame({ refused, found }, { refused: [], found: expected }, `history ${seed}`)) {
      if (++failed === 3) break
    }
  }
  t.comment(`${histories} histories, ${commands} commands`)
})

/** The words of a command line that quotes as a shell does. */
function parse(line: string): string[] {
  return line.match(/(?:[^\s'\\]|'[^']*'|\\.)+/g)!
    .map((word) => word.replace(/'([^']*)'|\\(.)/g, (_, quoted, escaped) => quoted ?? escaped))
}

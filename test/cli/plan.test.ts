/** Plans of changes: `--dry-run`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { NewKey } from '../../core/admin/key-plans.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import { endpointPath } from '../../core/routes/route.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { utcDay } from '../../core/lib/time.ts'
import { DAY, usageCount } from '../contract/store/samples.ts'
import { temporaryFolder } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'

/** Opens a store with the partner acme. */
async function open() {
  const { issue, store, ...created } = await createStore({ modules: ['banner', 'pricing', 'profiles'] })
  return {
    ...created,
    store,
    issue: async (more?: Partial<NewKey>) => (await issue(more)).key,
    /** Counts requests of a key, without errors. */
    countRequests: (keyId: string, day: string, endpoint: string, requests: number, errors = 0) =>
      store.recordUsage(
        [usageCount({ keyId, day, endpoint, requests, errors })],
        `batch ${keyId} ${day} ${endpoint}`,
      ),
  }
}

const endpoints = ROUTES.filter(({ access }) => access === 'key')

/** Asks every endpoint with a key. @returns The problem codes, `undefined` for a success. */
async function askAll(
  api: PartnerApi,
  { text, partner }: { readonly text: string; readonly partner: string },
) {
  const codes = endpoints.map(async (route): Promise<[endpoint: string, code: string | undefined]> => {
    const url = `http://service${endpointPath(route, 'service').replace('{slug}', 'nothing')}`
    const headers = { authorization: `Bearer ${text}`, 'content-type': 'application/json' }
    const request = route.method === 'GET'
      ? new Request(`${url}?partner=${partner}`, { headers })
      : new Request(url, { method: 'POST', headers, body: JSON.stringify({ partner }) })
    const response = await api.fetch(request)
    return [route.name, response.ok ? undefined : (await response.json()).code]
  })
  return new Map(await Promise.all(codes))
}

/** The problems of the policy; others are about the request. */
const denials = [
  'key_revoked',
  'key_expired',
  'key_disabled',
  'partner_suspended',
  'scope_missing',
  'module_inactive',
]

/** What KEY or PARTNER is before the change. */
const states = ['active', 'disabled', 'revoked', 'retiring', 'retired', 'suspended'] as const
const commands = [
  'scopes remove KEY read:banner read:plans',
  'modules deactivate PARTNER banner signup',
  'keys revoke KEY',
  'keys disable KEY',
  'keys update KEY --clear-allow --name Other',
  'partners suspend PARTNER',
  'partners remove PARTNER --yes',
  'keys limit KEY --limit key=0',
  'keys rotate KEY --overlap 0',
]

test('a dry run says what HTTP answers after the change', { timeout: 600_000 }, async (t) => {
  const { store, partners, keys, json } = await open()
  const off = ['key', 'signup', 'verify', 'authfail'].map((name) => [name, { quota: 0, windowSeconds: 1 }])
  const api = createPartnerApi({ store }, { maxStalenessMs: 0, limits: Object.fromEntries(off) })
  t.teardown(() => api.close())

  /** Creates a partner with a key in a state, its successor if it was rotated, and a test key with fewer scopes. */
  async function prepare(partner: string, state: (typeof states)[number]) {
    await partners.create({ slug: partner, name: partner, modules: MODULE_NAMES })
    const full = await keys.issue({ partner, name: 'Full', environment: 'live' })
    const scopes = ['read:banner', 'read:profiles']
    const issued = [full, await keys.issue({ partner, name: 'Test', environment: 'test', scopes })]
    const { id } = full.key
    if (state === 'disabled') await keys.disable(id)
    if (state === 'revoked') await keys.revoke(id)
    if (state === 'suspended') await partners.suspend(partner)
    if (state === 'retiring' || state === 'retired') {
      issued.push(await keys.rotate(id, state === 'retired' ? { overlapMs: 0 } : {}))
    }
    await partners.deactivate(partner, ['countries'])
    return issued.map(({ key: { id }, text }, rounds) => ({ id, text, partner, rounds }))
  }

  const seen = new Set<string>()
  for (const [command, state] of commands.flatMap((one) => states.map((state) => [one, state] as const))) {
    const label = `${command}, ${state}`
    const partner = `partner-${commands.indexOf(command)}-${state}`
    const issued = await prepare(partner, state)
    const before = []
    for (const key of issued) {
      before.push(await askAll(api, key))
      for (let round = 0; round < key.rounds; round++) await askAll(api, key)
    }
    await api.flush()
    const args = command.replace('KEY', issued[0]!.id).replace('PARTNER', partner).split(' ')
    const untouched = [await store.revision(), await store.auditHead()]
    const planned = await json(...args, '--dry-run')
    t.same([await store.revision(), await store.auditHead()], untouched, `${label}: the store is unchanged`)

    const real = await json(...args)
    t.same([planned.code, planned.error?.code], [real.code, real.error?.code], label)
    const expected: [line: string, requests: number][] = []
    for (const [index, key] of issued.entries()) {
      for (const [endpoint, code = ''] of await askAll(api, key)) {
        if (!denials.includes(code) || denials.includes(before[index]!.get(endpoint) ?? '')) continue
        expected.push([`${key.id} ${endpoint} ${code}`, 1 + key.rounds])
        seen.add(code)
      }
    }
    // deno-lint-ignore no-explicit-any -- the document of the command
    const found = (planned.data?.keys ?? []).flatMap(({ id, refusals }: any) =>
      // deno-lint-ignore no-explicit-any -- as above
      refusals.map(({ endpoint, code, requests }: any) => [`${id} ${endpoint} ${code}`, requests])
    )
    t.same(found.sort(), expected.sort(), label)
    t.equal(planned.data?.requests ?? 0, expected.reduce((sum, [, requests]) => sum + requests, 0), label)
  }
  t.same([...seen].sort(), [...denials].sort(), 'every denial was planned')
})

test('a dry run of the removal of a partner leaves its webhooks as they are', async (t) => {
  const { store, json } = await open()
  const webhook = {
    id: 'whk_1',
    url: 'https://hook.example',
    events: ['key.issued'],
    partner: 'acme',
    state: 'active',
    createdAt: Date.now(),
    secrets: [],
    failingSince: undefined,
  } as const
  const context = { actor: 'test', at: Date.now() }
  await store.webhooks.changeWebhook('whk_1', 'webhook.created', context, () => webhook)
  t.same((await json('partners', 'remove', 'acme', '--dry-run')).data.changes, ['partner.removed'])
  t.match(await store.webhooks.listWebhooks(), [{ state: 'active' }])
})

const today = utcDay(Date.now())
const daysAgo = (days: number) => utcDay(Date.now() - days * DAY)
test('a dry run counts whole days, is refused as the change would be, and explains what is unknown', async (t) => {
  const { partners, keys, run, json, refuses, issue, countRequests } = await open()
  await partners.create({ slug: 'gone', name: 'Gone', modules: [] })
  await partners.remove('gone')
  const { id } = await issue({ scopes: ['read:profiles'] })
  await Promise.all([issue(), issue()])
  await countRequests(id, today, 'profiles', 1000, 3)
  await countRequests(id, daysAgo(6), 'verify-key', 20)
  await countRequests(id, daysAgo(7), 'profiles', 7)
  const plan = async (...args: string[]) => (await json(...args, '--dry-run')).data
  t.match(await plan('modules', 'deactivate', 'acme', 'profiles'), {
    changes: ['module.deactivated'],
    from: daysAgo(6),
    to: today,
    requests: 1000,
    refusals: {
      2: { endpoint: 'profile', requests: 0 },
      1: { endpoint: 'profiles', errors: 3, code: 'module_inactive' },
    },
    keys: [{ id, partner: 'acme', name: 'Plugin', requests: 1000 }, { requests: 0 }, { requests: 0 }],
  })
  t.equal((await plan('keys', 'revoke', id)).requests, 1020)
  t.equal((await plan('keys', 'revoke', id, '--days', '8')).requests, 1027)
  t.equal((await keys.show(id)).state, 'active')
  t.match(await run('partners', 'remove', 'acme', '--dry-run'), {
    code: 0,
    stdout: /^1,020 requests from .*\n\nENDPOINT .*\n(.*\n)*profiles +401 key_revoked +3 +1,000 +3\n/,
    stderr: 'Dry run: nothing was changed.\n',
  })

  const expiry = await plan('keys', 'update', id, '--expires', '2099-12-31T00:00:00Z')
  t.match(expiry, { requests: 1020, keys: [{ refused_from: '2099-12-31T00:00:00.000Z' }] })
  t.match(await run('keys', 'update', id, '--allow', '192.0.2.1', '--dry-run'), {
    stdout: /^An unknown number of requests from \S+ to \S+ \(UTC\) would be refused\.\n$/,
    stderr: /Addresses are not recorded/,
  })
  const out = join(temporaryFolder(), 'next.key')
  const overlap = await plan('keys', 'rotate', id, '--overlap', '2h', '--out', out)
  t.match(overlap, { changes: ['key.issued', 'key.rotated'], requests: 1020, keys: [{ id }] })
  t.ok(Date.parse(overlap.keys[0].refused_from) > Date.now() + DAY / 24, 'from the end of the overlap on')
  t.notOk(existsSync(out), 'and nothing is written')
  // 145 windows of ten minutes touch a day.
  const limit = await plan('partners', 'update', 'acme', '--limit', 'key=5/600')
  t.match(limit, {
    is_lower_bound: true,
    requests: 997 - 5 * 145,
    refusals: [{ endpoint: null, policy: 'key', code: 'rate_limited', requests: 272, keys: 1 }],
  })
  t.match(await plan('keys', 'limit', id, '--limit', 'key=100000/1'), {
    requests: 0,
    refusals: { length: 0 },
  })
  const { id: daily } = await issue()
  for (const days of [0, 1, 2]) await countRequests(daily, daysAgo(days), 'profiles', 20)
  const byDay = await plan('keys', 'limit', daily, '--limit', 'key=5/86400', '--days', '3')
  t.equal(byDay.requests, 60 - 5 * 4, 'four windows of a day touch three days')
  const { id: unused } = await issue()
  const unknown = { requests: null, is_lower_bound: false, are_addresses_unknown: true, keys_affected: null }
  const nothing = { requests: 0, is_lower_bound: false, are_addresses_unknown: false, keys_affected: 0 }
  const least = { ...nothing, is_lower_bound: true }
  const cases: Readonly<Record<string, object>> = {
    'keys update ID --allow 192.0.2.1': unknown,
    'keys update ID --allow 192.0.2.1 --expires 1d': unknown,
    'keys update ID --clear-allow': nothing,
    'keys limit ID --limit key=5/60': least,
    'keys limit ID --limit key=100000/1': nothing,
    'partners update acme --limit signup=1/60': nothing,
  }
  for (const state of ['in force', 'disabled', 'revoked']) {
    if (state === 'disabled') await keys.disable(unused)
    if (state === 'revoked') await keys.revoke(unused)
    for (const [command, expected] of Object.entries(cases)) {
      const isOpen = state === 'in force' || command.startsWith('partners')
      if (state === 'revoked' && command.startsWith('keys')) continue
      const words = command.replace('ID', unused).split(' ')
      t.match(await plan(...words), isOpen ? expected : nothing, `${command}, ${state}`)
    }
  }
  await partners.create({ slug: 'keyless', name: 'Keyless', modules: [] })
  t.match(await plan('partners', 'suspend', 'keyless'), { changes: ['partner.suspended'], keys_affected: 0 })
  await refuses(t, {
    'keys revoke nothing --dry-run': '1 key_not_found',
    [`scopes remove ${id} nothing --dry-run`]: '2 usage',
    'modules deactivate nobody banner --dry-run': '1 partner_not_found',
    'partners suspend gone --dry-run': '1 partner_removed',
    [`keys update ${id} --expires 2020-01-01 --dry-run`]: '1 invalid_expiry',
    [`keys revoke ${id} --dry-run --wait`]: '2 usage',
    [`keys revoke ${id} --days 3`]: '2 usage',
    [`keys revoke ${id} --days 367 --dry-run`]: '2 usage',
  })
})

/** What clients are told of their limits, read by a parser of structured fields that is not ours (RFC 9651). */
import { parseList } from 'structured-headers'
import t from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { MODULE_NAMES } from '../../core/policy/modules.ts'

const actor = 'test'
const limits = {
  key: { quota: 3, windowSeconds: 60 },
  signup: { quota: 2, windowSeconds: 30 },
  authfail: { quota: 2, windowSeconds: 60 },
}

async function started(): Promise<{ base: string; issue: () => Promise<string>; stop: () => Promise<void> }> {
  const store = createMemoryStore()
  await createPartnerAdministration(store, { actor }).create({
    slug: 'acme',
    name: 'Acme',
    modules: MODULE_NAMES,
  })
  const keys = createKeyAdministration(store, { actor })
  const api = createPartnerApi({ store }, { limits, trustedProxies: 1 })
  const server = await serve(api, { port: 0 })
  return {
    base: `${server.url}/service`,
    issue: async () => (await keys.issue({ partner: 'acme', name: 'k', environment: 'live' })).text,
    stop: () => server.drain(),
  }
}

/** Policies by name with their parameters. */
function read(field: string | null): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    parseList(field ?? '').map(([name, parameters]) => [String(name), Object.fromEntries(parameters)]),
  )
}

t.test('the fields are structured fields, and 429 comes at exactly the quota', async (t) => {
  const { base, issue, stop } = await started()
  t.teardown(stop)
  const key = await issue()
  for (let request = 1; request <= 5; request++) {
    const answer = await fetch(`${base}/public/plans?partner=acme`, {
      headers: { 'x-service-partner-key': key },
    })
    t.equal(answer.status, request <= 3 ? 200 : 429, `request ${request}`)
    t.strictSame(read(answer.headers.get('ratelimit-policy')), { key: { q: 3, w: 60 } })
    const { r, t: reset } = read(answer.headers.get('ratelimit'))['key'] ?? {}
    t.equal(r, Math.max(0, 3 - request))
    t.ok(Number.isInteger(reset) && Number(reset) >= 1 && Number(reset) <= 60)
    if (request > 3) t.ok(Number(answer.headers.get('retry-after')) >= Number(reset))
  }
})

t.test('a route with two policies names both', async (t) => {
  const { base, issue, stop } = await started()
  t.teardown(stop)
  const answer = await fetch(`${base}/partner/signups`, {
    method: 'POST',
    headers: { 'x-service-partner-key': await issue(), 'content-type': 'application/json' },
    body: JSON.stringify({ partner: 'acme', email: 'someone@mail.example', name: 'Someone' }),
  })
  t.equal(answer.status, 201)
  t.strictSame(read(answer.headers.get('ratelimit-policy')), {
    key: { q: 3, w: 60 },
    signup: { q: 2, w: 30 },
  })
  const left = read(answer.headers.get('ratelimit'))
  t.equal(left['key']?.['r'], 2)
  t.equal(left['signup']?.['r'], 1)
})

t.test('two clients behind one proxy are two addresses', async (t) => {
  const { base, stop } = await started()
  t.teardown(stop)
  const statusFor = async (client: string) => {
    const headers = { 'x-service-partner-key': 'wrong', 'x-forwarded-for': client }
    return (await fetch(`${base}/public/plans?partner=acme`, { headers })).status
  }
  for (const expected of [401, 401, 429, 429]) t.equal(await statusFor('203.0.113.1'), expected)
  for (const expected of [401, 401, 429]) t.equal(await statusFor('203.0.113.2'), expected)
  t.equal(await statusFor('198.51.100.9, 203.0.113.1'), 429, 'what the client itself wrote does not count')
})

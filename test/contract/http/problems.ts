/** Section 13: partners see what their keys were refused. */
import type { TestKey } from '../../support/world.ts'
import { dataOf, expectInvalid, expectProblem } from './expect.ts'
import { get, post, type Service, type Suite, type TestContext, until } from './service.ts'

export const problems: readonly Suite[] = [{
  tests: {
    'problems lists what keys of the partner were refused': refusals,
    'a cursor of problems is valid for its partner and kind of key': cursors,
  },
}]

interface Row {
  readonly request_id: string
}

/** A partner that only one test uses. */
async function createPartner({ world }: Service, slug: string) {
  await world.partners.create({ slug, name: slug, modules: ['profiles', 'banner'] })
  const keys = {
    live: await world.issue({ partner: slug, scopes: ['read:profiles', 'read:banner'] }),
    test: await world.issue({ partner: slug, environment: 'test' }),
  }
  await world.partners.deactivate(slug, ['banner'])
  return keys
}

async function refusals(t: TestContext, service: Service): Promise<void> {
  const partner = 'refused'
  const { live, test } = await createPartner(service, partner)
  const revoked = await service.world.issue({ partner })
  await service.world.keyRing.revoke(revoked.id)
  const send = (path: string, key: TestKey, method = 'GET') =>
    get(service, `${path}${path.includes('?') ? '&' : '?'}partner=${partner}`, { key, method })
  const sent = [
    await send('/public/plans?secret=canary', live),
    await send('/public/banner', live),
    await send('/public/profiles/missing-one', live),
    await send('/public/profiles?limit=canary', live),
    await send(`/public/profiles/${live.text}`, live),
    await send('/public/plans', live, 'HEAD'),
    await post(service, JSON.stringify({ partner: 'canary' }), { key: live }),
    await get(service, '/public/profiles', { key: live }),
    await send('/public/plans', revoked),
  ]
  await send('/nowhere', live)
  await send('/public/profiles', live)
  await get(service, `/public/plans?partner=${partner}`, { headers: { 'x-service-partner-key': 'none' } })
  const ofTest = await send('/public/countries', test)
  const list = (key: TestKey, query = '') => send(`/developer/problems${query}`, key)

  const { response } = await until(() => list(live), ({ json }) => json.data.length >= sent.length)
  const rows: readonly Row[] = dataOf(t, response, 'all')
  t.strictSame(
    rows.map((row) => row.request_id).toSorted(),
    sent.map(({ headers }) => headers.get('x-request-id')).toSorted(),
    'those of live keys, also of revoked ones',
  )
  const times = rows.map((row) => (row as unknown as { at: string }).at)
  t.strictSame(times, times.toSorted().reverse(), 'newest first')
  t.strictSame(response.json.page, { limit: 20, has_more: false, next_cursor: null })
  t.ok(!response.text.includes('canary'), 'no value of a request is shown')
  const rowOf = (index: number) => {
    const { at: _, key_id, hint, request_id: __, ...row } = rows.find(({ request_id }) =>
      request_id === sent[index]!.headers.get('x-request-id')
    ) as unknown as Record<string, unknown>
    const key = index === 8 ? revoked : live
    t.strictSame([key_id, hint], [key.id, `…${key.text.slice(-4)}`], 'the key')
    return row
  }
  const { root } = service
  const plans = {
    method: 'GET',
    path: `${root}/public/plans`,
    status: 403,
    code: 'scope_missing',
    detail: sent[0]!.json.detail,
    required_scope: 'read:plans',
  }
  t.strictSame(rowOf(0), plans)
  const banner = { method: 'GET', path: `${root}/public/banner`, status: 403, code: 'module_inactive' }
  t.strictSame(rowOf(1), { ...banner, detail: sent[1]!.json.detail, required_module: 'banner' })
  const missing = { method: 'GET', path: `${root}/public/profiles/missing-one`, status: 404 }
  t.strictSame(rowOf(2), { ...missing, code: 'profile_not_found', detail: sent[2]!.json.detail })
  t.strictSame([rowOf(4)['path'], rowOf(5)['method']], ['/', 'HEAD'], 'a key in the path is redacted')
  t.strictSame(rowOf(8), {
    method: 'GET',
    path: `${root}/public/plans`,
    status: 401,
    code: 'key_revoked',
    detail: sent[8]!.json.detail,
  })
  const ofTests = await until(() => list(test), ({ json }) => json.data.length > 0)
  const tested: readonly Row[] = dataOf(t, ofTests.response, 'of test keys')
  t.strictSame(tested.map((row) => row.request_id), [ofTest.headers.get('x-request-id')])

  const found: unknown[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const { json } = await list(live, `?limit=4${cursor === '' ? '' : `&cursor=${cursor}`}`)
    found.push(...json.data)
    cursor = json.page.next_cursor
  }
  t.strictSame(found, rows, 'the pages together are the list')
  expectInvalid(t, await list(live, '?limit=101'), ['limit'], 'limit')
}

async function cursors(t: TestContext, service: Service): Promise<void> {
  const partner = 'refused-twice'
  const { live, test } = await createPartner(service, partner)
  const list = (key: TestKey, query: string, slug = partner) =>
    get(service, `/developer/problems?partner=${slug}&limit=1${query}`, { key })
  for (const key of [live, live, test, test]) {
    await get(service, `/public/countries?partner=${partner}`, { key })
  }
  for (const key of [live, test]) await until(() => list(key, ''), ({ json }) => json.page.has_more)
  const cursor = `&cursor=${(await list(live, '')).json.page.next_cursor}`
  t.equal((await list(live, cursor)).json.data.length, 1)
  expectProblem(t, await list(test, cursor), 'invalid_cursor', 'a test key')
  const { 'acme full': other } = service.world.keys
  expectProblem(t, await list(other, cursor, 'acme'), 'invalid_cursor', 'another partner')
  expectProblem(t, await list(other, '', partner), 'partner_mismatch', 'problems of another partner')
}

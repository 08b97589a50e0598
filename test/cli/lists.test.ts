/** The lists of keys, partners, signups and audit entries: filters, pages and columns. */
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { utcDay } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { Change } from '../../core/ports/changes.ts'
import type { RecordedProblem } from '../../core/ports/reports.ts'
import { apply, createPartners, key, signup, usageCount } from '../contract/store/samples.ts'
import { newFile, programOn } from '../support/cli-program.ts'

const hour = 3_600_000
const day = 24 * hour
const now = Date.now()
const file = newFile()
const store = await openSqliteStore(file)
await createPartners(store, ...Array.from({ length: 101 }, (_, index) => `partner-${100 + index}`))
const special: readonly Partial<Key>[] = [
  { expiresAt: now + 12.5 * day, scopes: ['read:banner'], lastUsedAt: now - 5 * day },
  {
    retiresAt: now + 36.5 * hour,
    successorId: 'key000000002',
    createdAt: now - 10 * day,
    environment: 'test',
  },
  { expiresAt: now - 3.5 * hour },
  { state: 'revoked', retiresAt: now + day, successorId: 'key000000004', expiresAt: now + 2 * day },
  { lastUsedAt: now - 100 * day },
]
const issued = Array.from({ length: 105 }, (_, index): Change => ({
  type: 'key.issued',
  key: key({
    id: `key${String(index).padStart(9, '0')}`,
    partner: 'partner-100',
    createdAt: now - 200 * day + index,
    lastUsedAt: now - day,
    ...special[index],
  }),
}))
await apply(store, ...issued)
const used = 'key000000000'
const counts = ([[0, 'plans', 5], [6, 'plans', 7], [6, 'banner', 2], [7, 'plans', 9]] as const).map((
  [daysAgo, endpoint, requests],
) =>
  usageCount({
    partner: 'partner-100',
    keyId: used,
    day: utcDay(now - daysAgo * day),
    endpoint,
    requests,
    errors: 1,
  })
)
await store.recordUsage(counts, 'batch')
const refused = (index: number, more: Partial<RecordedProblem> = {}): RecordedProblem => {
  const at = now - index * 60_000
  const record = {
    at: new Date(at).toISOString(),
    key_id: used,
    hint: '…9xQ2',
    method: 'GET',
    path: '/service/public/plans',
    status: 403,
    code: 'scope_missing',
    detail: 'This key lacks it.',
    request_id: `req_${index}`,
    required_scope: 'read:plans',
  }
  const rest = {
    partner: 'partner-100',
    keyId: used,
    environment: 'live',
    record: JSON.stringify(record),
  } as const
  return { ...rest, id: `req_${index}`, at, ...more }
}
await store.recordUsage([], 'problems', undefined, [
  refused(1),
  refused(2),
  refused(3, { environment: 'test', keyId: 'key000000001' }),
  refused(4, { partner: 'partner-101', keyId: 'key000000002' }),
])
const signups = Array.from(
  { length: 102 },
  (_, index) => signup(String(index), { partner: 'partner-100', keyId: used, createdAt: now - (index >> 1) }),
)
for (const each of signups) await store.createSignup(each, undefined)
await store.close()

const { run, json, refuses } = programOn(`sqlite:${file}`)
const { run: onTerminal } = programOn(`sqlite:${file}`, { columns: 200, env: { NO_COLOR: '1' } })
const ids = async (...args: string[]) =>
  (await json('keys', 'list', ...args)).data.map(({ id }: { readonly id: string }) => Number(id.slice(3)))

test('keys list selects keys by what operators ask', async (t) => {
  t.same(await ids('--expiring', '14d'), [0, 1])
  t.same(await ids('--expiring', '2d'), [1])
  t.same(await ids('--unused', '90d'), [4])
  t.same(await ids('--unused', '4d', '--scope', 'read:banner'), [0])
  t.same(await ids('--state', 'expired', 'revoked'), [2, 3])
  t.same(await ids('--environment', 'test'), [1])
  t.equal((await ids('partner-100', '--state', 'active')).length, 102)
  t.same(await ids('partner-101'), [])
  await refuses(t, {
    'keys list --state retired': '2 usage',
    'keys list --scope banner': '2 usage',
    'keys list --environment staging': '2 usage',
    'keys list --expiring soon': '2 usage',
    'keys list --after key000000999': '1 key_not_found',
    'signups list --after sgn_x': '1 signup_not_found',
  })
  t.match((await run('keys', 'list', '--unused', '365d')).stderr, 'no such keys')
})

test('keys list says ends and uses in words, and counts the requests of seven days', async (t) => {
  const lines = (await run('keys', 'list', '--limit', '5')).stdout.split('\n').slice(1)
  const ends = ['in 12 days +5 days ago +14', 'in 36 hours +24 hours ago +0', '3 hours ago +24 hours ago +0']
  // The last key was issued ten days ago, and has no place among the oldest five.
  const [first, expired, revoked, unused] = lines
  t.match(first, new RegExp(`${ends[0]} +– +–$`))
  t.match(expired, new RegExp(`expired +0 +${ends[2]} +– +–$`))
  t.match(revoked, /revoked +0 +– +24 hours ago +0 +– +key000000004, used 3 months ago$/)
  t.match(unused, /active +0 +never +3 months ago +0 +– +–$/)
  t.match(
    (await run('keys', 'list', '--state', 'retiring')).stdout,
    new RegExp(`${ends[1]} +– +key000000002, used 24 hours ago\n`),
  )
  const table = (await run('keys', 'list', '--limit', '5')).stdout.split('\n').slice(0, -1)
  const column = table[0]!.indexOf('SUCCESSOR')
  t.same(table.map((line) => line.slice(column - 2, column + 1)), ['  S', '  –', '  –', '  k', '  –', '  –'])
  t.match(table[1]!.slice(table[0]!.indexOf('7 DAYS')), /^ {4}14 /)
  const { data } = await json('keys', 'list', '--limit', '3')
  t.match(data[0], { expires_at: new Date(now + 12.5 * day).toISOString(), requests_7d: 14, errors_7d: 3 })
  t.match(data[1], { requests_7d: 0, errors_7d: 0 })
  t.same(
    data[2].rotation,
    { successor_id: 'key000000004', retires_at: null },
    'the overlap of a revoked key is over',
  )
  t.match((await run('keys', 'show', 'key000000003')).stdout, /successor: +key000000004, last used: .* UTC\n/)
})

test('lists have pages on a terminal, and programs get all rows', async (t) => {
  const lists: readonly (readonly [command: string, total: number, lastOfPage: string, next: number])[] = [
    ['keys list', 105, 'key000000100', 5],
    ['partners list', 101, 'partner-199', 1],
    ['signups list', 102, signups[99]!.id, 2],
    ['audit list --after 0', 206, '100', 106],
  ]
  for (const [command, total, lastOfPage, next] of lists) {
    const args = command.split(' ')
    const page = await onTerminal(...args)
    t.equal(page.stdout.trimEnd().split('\n').length, 101, command)
    t.match(page.stderr, new RegExp(`--after ${lastOfPage} `), command)
    t.equal((await run(...args)).stdout.trimEnd().split('\n').length, total + 1, `${command} in a pipe`)
    const { data } = await json(...args)
    t.equal(data.length, total, `${command} --json`)
    const rest = await json(...args, '--after', lastOfPage)
    t.same(rest.data, data.slice(-next), `${command} --after`)
    t.equal(rest.stderr, '')
    const limited = await json(...args, '--after', lastOfPage, '--limit', '1')
    t.same(limited.data, data.slice(-next).slice(0, 1), `${command} --limit`)
  }
  t.match((await onTerminal('audit', 'list')).stdout, /^206 /m, 'the last entries')
})

test('problems lists what keys were refused, and explain --request says what to do', async (t) => {
  const requests = async (...args: string[]) =>
    (await json('problems', ...args)).data.map(({ request_id: id }: { readonly request_id: string }) => id)
  t.same(await requests(), ['req_1', 'req_2', 'req_3', 'req_4'])
  t.same(await requests('partner-100', '--environment', 'live'), ['req_1', 'req_2'])
  t.same(await requests('--key', 'key000000002'), ['req_4'])
  t.same(await requests('--limit', '2', '--after', 'req_1'), ['req_2', 'req_3'])
  t.same(await requests('partner-102'), [])
  const { data } = await json('problems', '--limit', '1')
  t.match(data, [{
    partner: 'partner-100',
    environment: 'live',
    key_id: used,
    request_id: 'req_1',
    status: 403,
    code: 'scope_missing',
    required_scope: 'read:plans',
  }])
  const { stdout } = await run('problems', 'partner-101')
  t.match(stdout, /^ID +WHEN +PARTNER +KEY +KIND +STATUS +CODE +METHOD +PATH\nreq_4 /)
  const next = `scopes grant ${used} read:plans`
  t.match(await json('explain', '--request', 'req_2'), {
    code: 0,
    data: { request_id: 'req_2', code: 'scope_missing', next_step: next },
  })
  t.match(await run('explain', '--request', 'req_2'), { code: 0, stdout: next })
  await refuses(t, {
    'problems nobody': '1 partner_not_found',
    'problems --key nothing': '1 key_not_found',
    'problems --environment staging': '2 usage',
    'problems --after req_x': '1 problem_not_found',
    'explain --request req_x': '1 problem_not_found',
    'explain --request req_1 GET /service/public/plans': '2 usage',
    'explain --request req_1 --address 192.0.2.7': '2 usage',
    explain: '2 usage',
  })
})

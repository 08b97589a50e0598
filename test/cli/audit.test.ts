/** The commands that read the audit log, signups and decisions. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { signup } from '../contract/store/samples.ts'
import { programOn, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const file = join(folder, 'store.db')
const store = await openSqliteStore(file)
const at = Date.UTC(2026, 0, 1)
const operator = { actor: 'Ada \u202e', clock: () => at }

const { run, json, refuses } = programOn(`sqlite:${file}`)
const sequences = (data: readonly { readonly sequence: number }[]) => data.map(({ sequence }) => sequence)

test('an empty store has empty lists and an intact audit log', async (t) => {
  const { run, json } = programOn('memory:')
  for (const command of ['audit list', 'signups list', 'signups export']) {
    t.match(await run(...command.split(' ')), { code: 0, stdout: '', stderr: 'There are no' })
  }
  t.same((await json('signups', 'export')).data, [])
  t.same((await json('audit', 'verify')).data, { valid: true, entries: 0, seal: null })
})

// Entries 1–2 create partners, 3 a key, 4–6 change it, 7 is of the other partner.
const partners = createPartnerAdministration(store, { ...operator, actor: 'Grace' })
const keys = createKeyAdministration(store, operator)
await partners.create({ slug: 'acme', name: 'Acme', modules: ['profiles', 'signup'] })
await partners.create({ slug: 'other', name: 'Other', modules: ['signup'] })
const { key, text } = await keys.issue({
  partner: 'acme',
  name: 'Plugin',
  environment: 'live',
  allow: ['192.0.2.0/24'],
  scopes: ['read:profiles'],
})
await partners.update('acme', {
  name: 'Acme Travel',
  limits: { set: { key: { quota: 5, windowSeconds: 10 } } },
})
await keys.disable(key.id)
await keys.enable(key.id)
const { key: otherKey } = await keys.issue({ partner: 'other', name: 'Form', environment: 'test' })

test('audit list shows the latest entries, by partner and limit', async (t) => {
  const { data } = await json('audit', 'list')
  t.same(sequences(data), [1, 2, 3, 4, 5, 6, 7])
  t.match(data[3], {
    id: /^act_/,
    occurred_at: new Date(at).toISOString(),
    actor: 'Grace',
    type: 'partner.updated',
    partner: 'acme',
    key_id: null,
    subject: null,
    before: { name: 'Acme', limits: [], created_at: new Date(at).toISOString() },
    after: { name: 'Acme Travel', limits: [{ policy: 'key', quota: 5, window_seconds: 10 }] },
    seal: /^[0-9a-f]{64}$/,
  })
  t.match(data[2], { type: 'key.issued', key_id: key.id, before: null, after: { hint: key.hint } })
  const all = JSON.stringify(data)
  for (const secret of [text.slice(-38), key.digest]) t.notOk(all.includes(secret))

  const human = await run('audit', 'list')
  t.match(human.stdout, /^NO\. +WHEN +WHO +WHAT/)
  t.match(human.stdout, 'name: Acme → Acme Travel')
  t.match(human.stdout, 'state: active → disabled')
  t.match(human.stdout, 'limits: none → key=5/10')
  t.notMatch(human.stdout, '\u202e')

  const list = async (...args: string[]) => {
    const { data, stderr } = await json('audit', 'list', ...args)
    return { sequences: sequences(data), stderr }
  }
  t.match(await list('--after', '0', '--limit', '2'), { sequences: [1, 2], stderr: '--after 2' })
  t.same(await list('--after', '5'), { sequences: [6, 7], stderr: '' })
  t.match(await list('--limit', '2'), { sequences: [6, 7], stderr: 'older' })
  t.match(await list('--partner', 'acme', '--after', '1', '--limit', '2'), { sequences: [3, 4] })
  t.match(await list('--partner', 'other', '--limit', '1'), { sequences: [7] })
  await refuses(t, {
    'audit list --partner nobody': '1 partner_not_found',
    'audit list --limit 0': '2 usage',
    'signups export --partner nobody': '1 partner_not_found',
  })
})

const form = {
  keyId: key.id,
  createdAt: at,
  email: 'jo@example.com',
  name: 'Jo \u202eDoe',
  country: 'DE',
  message: 'Two\nlines\u2028and more',
  consentAt: at,
  metadata: { campaign: 'spring' },
} as const
const other = { partner: 'other', keyId: otherKey.id, environment: 'test', createdAt: at + 1 } as const
for (const [id, more] of Object.entries({ 1: {}, 2: { createdAt: at + 2 }, 3: other })) {
  await store.createSignup(signup(id, { ...form, ...more }), undefined)
}

test('signups list and export show signups newest first', async (t) => {
  const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => Number(id.slice(4)))
  const all = await json('signups', 'list')
  t.same(ids(all.data), [2, 3, 1], 'newest first')
  t.same(ids((await json('signups', 'list', '--partner', 'acme')).data), [2, 1])
  const one = await json('signups', 'list', '--limit', '1')
  t.same(ids(one.data), [2])
  t.match(one.stderr, 'more signups')
  const human = await run('signups', 'list')
  t.match(human.stdout, /^ID +RECEIVED +PARTNER/)
  t.match(human.stdout, /other +test /)
  t.notMatch(human.stdout, '\u202e')
  const lines = (await run('signups', 'export')).stdout.trimEnd().split('\n')
  t.equal(lines.length, 3)
  t.same(lines.map((line) => JSON.parse(line)), all.data)
  t.same(JSON.parse(lines[2]!), {
    id: 'sgn_00000000000000000001',
    partner: 'acme',
    key_id: key.id,
    environment: 'live',
    created_at: new Date(at).toISOString(),
    email: 'jo@example.com',
    name: 'Jo \u202eDoe',
    company: null,
    country: 'DE',
    plan: null,
    profile: null,
    locale: null,
    message: 'Two\nlines\u2028and more',
    consent_at: new Date(at).toISOString(),
    metadata: { campaign: 'spring' },
  })
  const ofOther = await run('signups', 'export', '--partner', 'other')
  t.match(JSON.parse(ofOther.stdout), { partner: 'other', environment: 'test' })
  t.same((await json('signups', 'export')).data, all.data)
})

test('explain reports the decision for a request', async (t) => {
  const explain = (request: string, partner = 'acme', id = key.id) =>
    json('explain', '--key-id', id, '--partner', partner, ...request.split(' '))
  const inside = '--address 192.0.2.7'
  const allowed = ['HEAD /service/public/profiles/nordlicht', 'POST /service/developer/verify-key']
  for (const request of [...allowed, '--service-name data GET /data/public/profiles']) {
    const { code, data } = await explain(`${inside} ${request}`)
    t.match([code, data.decision], [0, { allowed: true, code: null }], request)
    t.ok(data.rules.length >= 9)
    t.ok(data.rules.every(({ outcome }: { outcome: string }) => outcome === 'passed'))
  }
  const other = await explain(`${inside} GET /service/public/plans`, 'other')
  t.match([other.code, other.data.decision], [1, { allowed: false, code: 'partner_mismatch', status: 403 }])
  const scope = await explain(`${inside} POST /service/partner/signups`)
  t.match([scope.code, scope.data.decision.required_scope], [1, 'create:partner-signups'])
  t.match(scope.data.rules.slice(-3).map(({ outcome }: { outcome: string }) => outcome), [
    'refused',
    'not_reached',
    'not_reached',
  ])
  const unknown = await explain('GET /service/public/profiles')
  t.match([unknown.code, unknown.data.decision.code, unknown.stderr], [1, 'address_not_allowed', '--address'])
  const outside = await explain('--address 198.51.100.1 GET /service/public/profiles')
  t.match([outside.code, outside.data.decision.code, outside.stderr], [1, 'address_not_allowed', ''])
  const open = await explain('GET /service/health')
  t.match([open.code, open.data.decision.allowed, open.data.rules], [0, true, []])

  await partners.deactivate('acme', ['profiles'])
  const request = `--key-id ${key.id} --partner acme ${inside} GET /service/public/profiles`
  const inactive = await run('explain', ...request.split(' '))
  t.match(inactive, { code: 1, stdout: /^refused: 403 module_inactive\. The module profiles is not active/ })
  t.match(inactive.stdout, /an active module of the partner needs the scope +NO\n/)

  const known = `explain --key-id ${key.id} --partner acme`
  await refuses(t, {
    [`${known} GET /service/public/nothing`]: '1 route_not_found',
    [`${known} GET /service/public/profiles/%zz`]: '1 malformed_request',
    [`${known} OPTIONS /service/public/profiles`]: '1 method_not_allowed',
    [`${known} get /service/public/profiles`]: '1 malformed_request',
    'explain --key-id nothing --partner acme GET /service/public/plans': '1 key_not_found',
    [`${known} GET /service/public/profiles?partner=acme`]: '2 usage',
    [`${known} --address here GET /service/public/profiles`]: '2 usage',
    [`${known} GET`]: '2 usage',
    'explain --partner acme GET /service/public/profiles': '2 usage',
  })
  const elsewhere = await explain('GET /public/profiles')
  t.match(elsewhere.error, { code: 'route_not_found', detail: '/service/' })
  const written = await explain('DELETE /service/public/profiles')
  t.match(written.error, { code: 'method_not_allowed', detail: 'GET and HEAD' })
})

/** The program on a copy of the store that was modified through SQL. */
function onCopy(name: string, change = '') {
  const copy = join(folder, `${name}.db`)
  const source = new DatabaseSync(file)
  source.exec(`VACUUM INTO '${copy}'`)
  source.close()
  const alter = (statements: string) => {
    const database = new DatabaseSync(copy)
    database.exec(statements)
    database.close()
  }
  alter(change)
  return { ...programOn(`sqlite:${copy}`), alter }
}

test('audit verify reports what was modified, foreign triggers, and what cannot be read', async (t) => {
  const { sequence, hash: seal } = await store.auditHead()
  t.same((await json('audit', 'verify')).data, { valid: true, entries: sequence, seal })
  t.match((await run('audit', 'verify')).stdout, seal)

  const added = (place: string) => `
    INSERT INTO audit (sequence, id, at, actor, type, partner, key_id, subject, before, after, hash)
    SELECT ${place}, 'act_added', at, 'Mallory', type, partner, key_id, subject, before, after, hash
    FROM audit WHERE sequence = 4`
  const entry = (number: number, what: string) =>
    [`Entry ${number} of the audit log ${what}`, number] as const
  const damages: readonly (readonly [change: string, message: string, sequence?: number])[] = [
    [`UPDATE audit SET actor = 'Mallory' WHERE sequence = 4`, ...entry(4, 'was changed .* Mallory')],
    ['UPDATE audit SET at = 1152921504606846976, before = 5 WHERE sequence = 5', ...entry(5, 'was changed')],
    ['DELETE FROM audit WHERE sequence = 2', ...entry(2, 'is missing')],
    [`DELETE FROM audit WHERE sequence = ${sequence}`, ...entry(sequence, 'is missing')],
    [added('-9007199254740991'), ...entry(1, 'was replaced .*: act_added, number -9007199254740991')],
    [
      added('9223372036854775807'),
      ...entry(sequence + 1, 'was replaced .*: act_added, with an invalid number'),
    ],
    ['CREATE TRIGGER hush BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END', ': hush\\.'],
    ['DROP TABLE audit', 'The store cannot be verified: .*no such table: audit'],
    [`UPDATE partner_key SET allow = '{'`, 'The store cannot be verified: .*JSON'],
  ]
  for (const [index, [change, message, broken]] of damages.entries()) {
    const damaged = onCopy(`damaged-${index}`, change)
    t.match(await damaged.run('audit', 'verify'), { code: 1, stdout: '', stderr: new RegExp(message) })
    const { code, error } = await damaged.json('audit', 'verify')
    t.match({ code, error }, { code: 1, error: { code: 'audit_broken' } })
    t.equal(error['sequence'], broken)
    if (broken === undefined) continue
    t.equal((await damaged.run('audit', 'list')).code, 0, 'a damaged log can still be listed')
    t.equal((await damaged.json('audit', 'list')).code, 0)
  }
})

test('audit verify compares stored records with the entries, and the log with a seal', async (t) => {
  const { run, json, alter } = onCopy('altered')
  const { sequence, hash: seal } = await store.auditHead()
  const sealed = (await run('audit', 'seal')).stdout.trim()
  t.equal(sealed, `${sequence}:${seal}`)
  t.same((await json('audit', 'seal')).data, { sequence, hash: seal })
  const kept = await run('audit', 'verify', '--seal', sealed)
  t.match(kept, { code: 0, stderr: /^$/ })
  t.match(await run('audit', 'verify', '--seal', '0:'), { code: 0, stderr: 'proves nothing about any entry' })
  for (const wrong of ['1', `x:${seal}`, `1:${seal.slice(1)}`, '0:' + seal, '7:']) {
    t.match(await run('audit', 'verify', '--seal', wrong), { code: 2, stderr: 'SEQUENCE:HASH' })
  }
  const other = await run('audit', 'verify', '--seal', `${sequence - 1}:${seal}`)
  t.match(other, { code: 1, stderr: `Entry ${sequence - 1} of the audit log is not the one that was sealed` })
  const lost = await json('audit', 'verify', '--seal', `${sequence + 3}:${seal}`)
  t.match(lost.error, {
    code: 'audit_broken',
    detail: /end of the audit log is missing/,
    sequence: sequence + 1,
  })

  alter(`
    UPDATE partner_key SET scopes = 'read:partner-widget read:profiles', digest = '${
    'e'.repeat(64)
  }' WHERE id = '${key.id}';
    UPDATE partner SET name = 'Changed' WHERE slug = 'other'`)
  const human = await run('audit', 'verify')
  t.match(human, { code: 1, stdout: '' })
  t.match(human.stderr, `key ${key.id}: scopes: read:profiles → read:partner-widget`)
  t.match(human.stderr, /, digest replaced$/m)
  t.match(human.stderr, 'partner other: name: Other → Changed')
  t.match((await json('audit', 'verify')).error, {
    code: 'audit_mismatch',
    differences: [
      { partner: 'other', expected: { name: 'Other' }, stored: { name: 'Changed' }, broken_at: null },
      { key_id: key.id, expected: { scopes: ['read:profiles'] }, digest_replaced: true },
    ],
    intruders: [],
  })
  const listing = await run('audit', 'list', '--json')
  for (const { stdout, stderr } of [human, listing]) t.notMatch(stdout + stderr, /digest_?hash/i)
})

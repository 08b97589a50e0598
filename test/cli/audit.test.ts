/** What commands read of what happened and of who may do what: the audit trail, signups and decisions. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { Signup } from '../../core/ports/signups.ts'
import { documentOf, runProgram, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const file = join(folder.path, 'store.db')
const env = { PARTNER_API_STORE: `sqlite:${file}` }
const store = await openSqliteStore(file)
const at = Date.UTC(2026, 0, 1)
const operator = { actor: 'Ada \u202e', clock: () => at }

const run = (...args: string[]) => runProgram(args, { env })
const json = async (...args: string[]) => {
  const ended = await run(...args, '--json')
  return { ...ended, ...documentOf(ended) }
}
const sequences = (data: readonly { readonly sequence: number }[]) => data.map(({ sequence }) => sequence)

await test('before anything has happened', async (t) => {
  const [entries, signups, exported, exportedJson, whole] = await Promise.all([
    run('audit', 'list'),
    run('signups', 'list'),
    run('signups', 'export'),
    json('signups', 'export'),
    json('audit', 'verify'),
  ])
  for (const ended of [entries, signups, exported]) t.match(ended, { code: 0, stdout: '', stderr: 'no' })
  t.same(exportedJson.data, [])
  t.same(whole.data, { valid: true, entries: 0, seal: null })
})

// 1–2 partners, 3 key, 4–6 changes, 7 of the other partner.
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

await test('audit list', async (t) => {
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

  const [first, next, last, ofAcme, lastOfOther, nobody, zero] = await Promise.all([
    json('audit', 'list', '--after', '0', '--limit', '2'),
    json('audit', 'list', '--after', '5'),
    run('audit', 'list', '--limit', '2'),
    json('audit', 'list', '--partner', 'acme', '--after', '1', '--limit', '2'),
    json('audit', 'list', '--partner', 'other', '--limit', '1'),
    json('audit', 'list', '--partner', 'nobody'),
    json('audit', 'list', '--limit', '0'),
  ])
  t.same(sequences(first.data), [1, 2])
  t.match(first.stderr, '--after 2')
  t.same(sequences(next.data), [6, 7])
  t.equal(next.stderr, '')
  t.match(last.stdout, /^6 (.*\n)*^7 /m)
  t.match(last.stderr, 'older')
  t.same(sequences(ofAcme.data), [3, 4])
  t.same(sequences(lastOfOther.data), [7])
  t.match([nobody.code, nobody.error.code], [1, 'partner_not_found'])
  t.equal(zero.code, 2)
})

const signup = (id: string, more: Partial<Signup>): Signup => ({
  id: `sgn_${id.padStart(20, '0')}`,
  partner: 'acme',
  keyId: key.id,
  environment: 'live',
  createdAt: at,
  email: 'jo@example.com',
  name: 'Jo \u202eDoe',
  company: undefined,
  country: 'DE',
  plan: undefined,
  profile: undefined,
  locale: undefined,
  message: 'Two\nlines\u2028and more',
  consentAt: at,
  metadata: { campaign: 'spring' },
  ...more,
})
await store.createSignup(signup('1', {}), undefined)
await store.createSignup(signup('2', { createdAt: at + 2 }), undefined)
await store.createSignup(
  signup('3', { partner: 'other', keyId: otherKey.id, environment: 'test', createdAt: at + 1 }),
  undefined,
)

test('signups list and export', async (t) => {
  const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => Number(id.slice(4)))
  const [all, ofAcme, one, human, exported, ofOther, asDocument, nobody] = await Promise.all([
    json('signups', 'list'),
    json('signups', 'list', '--partner', 'acme'),
    json('signups', 'list', '--limit', '1'),
    run('signups', 'list'),
    run('signups', 'export'),
    run('signups', 'export', '--partner', 'other'),
    json('signups', 'export'),
    json('signups', 'export', '--partner', 'nobody'),
  ])
  t.same(ids(all.data), [2, 3, 1], 'newest first')
  t.same(ids(ofAcme.data), [2, 1])
  t.same(ids(one.data), [2])
  t.match(one.stderr, 'older')
  t.match(human.stdout, /^ID +RECEIVED +PARTNER/)
  t.match(human.stdout, /other +test /)
  t.notMatch(human.stdout, '\u202e')
  const lines = exported.stdout.trimEnd().split('\n')
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
  t.match(JSON.parse(ofOther.stdout), { partner: 'other', environment: 'test' })
  t.same(asDocument.data, all.data)
  t.match([nobody.code, nobody.error.code], [1, 'partner_not_found'])
})

test('explain', async (t) => {
  const ask = (...args: string[]) => json('explain', '--key-id', key.id, '--partner', 'acme', ...args)
  const inside = ['--address', '192.0.2.7']
  const [allowed, head, slug, other, scope, verify, nowhere, outside, open, renamed] = await Promise.all([
    ask(...inside, 'GET', '/service/public/profiles'),
    ask(...inside, 'head', '/service/public/profiles'),
    ask(...inside, 'GET', '/service/public/profiles/nordlicht'),
    json('explain', '--key-id', key.id, '--partner', 'other', ...inside, 'GET', '/service/public/plans'),
    ask(...inside, 'POST', '/service/partner/signups'),
    ask(...inside, 'POST', '/service/developer/verify-key'),
    ask('GET', '/service/public/profiles'),
    ask('--address', '198.51.100.1', 'GET', '/service/public/profiles'),
    ask('GET', '/service/health'),
    ask(...inside, '--service-name', 'data', 'GET', '/data/public/profiles'),
  ])
  for (const { code, data } of [allowed, head, slug, verify, renamed]) {
    t.equal(code, 0)
    t.match(data.decision, { allowed: true, code: null })
    t.ok(data.rules.length >= 9)
    t.ok(data.rules.every(({ outcome }: { outcome: string }) => outcome === 'passed'))
  }
  t.match([other.code, other.data.decision], [1, { allowed: false, code: 'partner_mismatch', status: 403 }])
  t.match([scope.code, scope.data.decision.required_scope], [1, 'create:partner-signups'])
  t.same(
    scope.data.rules.slice(-2).map(({ outcome }: { outcome: string }) => outcome),
    ['refused', 'not_reached'],
  )
  t.match([nowhere.code, nowhere.data.decision.code], [1, 'address_not_allowed'])
  t.match(nowhere.stderr, '--address')
  t.match([outside.code, outside.data.decision.code, outside.stderr], [1, 'address_not_allowed', ''])
  t.match([open.code, open.data.decision.allowed, open.data.rules], [0, true, []])

  await partners.deactivate('acme', ['profiles'])
  const inactive = await run(
    ...['explain', '--key-id', key.id, '--partner', 'acme', ...inside, 'GET', '/service/public/profiles'],
  )
  t.match(inactive, { code: 1, stdout: /^refused: 403 module_inactive\. The module profiles is not active/ })
  t.match(inactive.stdout, /an active module of the partner needs the scope +NO\n/)

  const wrong = await Promise.all([
    ask('GET', '/service/public/nothing'),
    ask('GET', '/public/profiles'),
    ask('GET', '/service/public/profiles/%zz'),
    ask('DELETE', '/service/public/profiles'),
    ask('OPTIONS', '/service/public/profiles'),
    json('explain', '--key-id', 'nothing', '--partner', 'acme', 'GET', '/service/public/plans'),
    ask('GET', '/service/public/profiles?partner=acme'),
    ask('--address', 'here', 'GET', '/service/public/profiles'),
    ask('GET'),
    json('explain', '--partner', 'acme', 'GET', '/service/public/profiles'),
  ])
  t.same(wrong.map(({ code, error }) => [code, error.code]), [
    [1, 'route_not_found'],
    [1, 'route_not_found'],
    [1, 'malformed_request'],
    [1, 'method_not_allowed'],
    [1, 'method_not_allowed'],
    [1, 'key_not_found'],
    ...Array(4).fill([2, 'usage']),
  ])
  t.match(wrong[1]!.error.detail, '/service/')
  t.match(wrong[3]!.error.detail, 'GET and HEAD')
})

test('audit verify', async (t) => {
  const { sequence, hash: seal } = await store.auditHead()
  t.same((await json('audit', 'verify')).data, { valid: true, entries: sequence, seal })
  t.match((await run('audit', 'verify')).stdout, seal)

  const added = (place: string) => `
    INSERT INTO audit (sequence, id, at, actor, type, partner, key_id, subject, before, after, seal)
    SELECT ${place}, 'act_added', at, 'Mallory', type, partner, key_id, subject, before, after, seal
    FROM audit WHERE sequence = 4`
  const damage: readonly (readonly [string, number])[] = [
    [`UPDATE audit SET actor = 'Mallory' WHERE sequence = 4`, 4],
    [`UPDATE audit SET after = '{"limits":{"key":null}}' WHERE sequence = 3`, 3],
    ['DELETE FROM audit WHERE sequence = 2', 2],
    ['UPDATE audit SET at = 9007199254740991, before = 5 WHERE sequence = 5', 5],
    [`DELETE FROM audit WHERE sequence = ${sequence}`, sequence],
    ...['0', '-9007199254740991', '-9223372036854775807'].map((place) => [added(place), 1] as const),
    ...['1152921504606846976', '9223372036854775807'].map((place) => [added(place), sequence + 1] as const),
    [`UPDATE store SET audit_sequence = 1152921504606846976`, sequence + 1],
    ['UPDATE audit SET at = 1152921504606846976 WHERE sequence = 5', 5],
  ]
  const results = await Promise.all(damage.map(async ([statement, broken], index) => {
    const copy = join(folder.path, `damaged-${index}.db`)
    const source = new DatabaseSync(file)
    source.exec(`VACUUM INTO '${copy}'`)
    source.close()
    const database = new DatabaseSync(copy)
    database.exec(statement)
    database.close()
    const start = { env: { PARTNER_API_STORE: `sqlite:${copy}` } }
    const [human, document, list, table] = await Promise.all([
      runProgram(['audit', 'verify'], start),
      runProgram(['audit', 'verify', '--json'], start),
      runProgram(['audit', 'list', '--json'], start),
      runProgram(['audit', 'list'], start),
    ])
    return { broken, human, document, list, table }
  }))
  for (const { broken, human, document, list, table } of results) {
    t.match(human, { code: 1, stdout: '', stderr: `Entry ${broken} of the audit log` })
    t.equal(document.code, 1)
    t.match(documentOf(document).error, { code: 'audit_broken', sequence: broken })
    t.equal(list.code, 0, 'what is damaged can still be read')
    t.equal(table.code, 0)
  }
  t.match(results[0]!.human.stderr, 'Mallory')
  t.match(results[2]!.human.stderr, 'is missing')
  t.match(
    results[6]!.human.stderr,
    'replaced by a row that no change has written: act_added, number -9007199254740991',
  )
  t.match(results[7]!.human.stderr, 'act_added, with an invalid number')
  t.match(results[8]!.human.stderr, 'act_added, with an invalid number')
})

test('audit verify names what acts when the trail is written', async (t) => {
  for (const table of ['audit', 'store']) {
    const copy = join(folder.path, `watched-${table}.db`)
    const database = new DatabaseSync(file)
    database.exec(`VACUUM INTO '${copy}'`)
    database.close()
    const watched = new DatabaseSync(copy)
    const event = table === 'audit' ? 'INSERT' : 'UPDATE'
    watched.exec(`CREATE TRIGGER hush BEFORE ${event} ON ${table} BEGIN SELECT RAISE(IGNORE); END`)
    watched.close()
    const start = { env: { PARTNER_API_STORE: `sqlite:${copy}` } }
    t.match(await runProgram(['audit', 'verify'], start), { code: 1, stdout: '', stderr: /: hush\./ })
    const { error } = documentOf(await runProgram(['audit', 'verify', '--json'], start))
    t.match(error, { code: 'audit_broken', intruders: ['hush'] })
  }
})

test('audit verify compares what is stored with the entries, and the end with a seal', async (t) => {
  const copy = join(folder.path, 'altered.db')
  const source = new DatabaseSync(file)
  source.exec(`VACUUM INTO '${copy}'`)
  source.close()
  const at = (...args: string[]) =>
    runProgram(['audit', ...args], { env: { PARTNER_API_STORE: `sqlite:${copy}` } })
  const { sequence, hash: seal } = await store.auditHead()
  const sealed = await at('seal')
  t.equal(sealed.stdout, `${sequence}:${seal}\n`)
  t.same(documentOf(await at('seal', '--json')).data, { sequence, hash: seal })
  t.equal((await at('verify', '--seal', sealed.stdout.trim())).code, 0)
  t.match(
    await at('verify', '--seal', '0:'),
    { code: 0, stderr: 'proves nothing about any entry' },
    'of an empty log',
  )
  t.notMatch(await at('verify', '--seal', sealed.stdout.trim()), { stderr: 'proves nothing about any entry' })
  for (const wrong of ['1', `x:${seal}`, `1:${seal.slice(1)}`, '0:' + seal, '7:']) {
    t.match(await at('verify', '--seal', wrong), { code: 2, stderr: 'SEQUENCE:HASH' })
  }
  const other = `${sequence - 1}:${seal}`
  t.match(await at('verify', '--seal', other), {
    code: 1,
    stderr: new RegExp(`Entry ${sequence - 1} .* is not the one that was sealed`),
  })
  const lost = await at('verify', '--json', '--seal', `${sequence + 3}:${seal}`)
  t.match(documentOf(lost).error, {
    code: 'audit_broken',
    detail: /end of the audit log is missing/,
    sequence: sequence + 1,
  })

  const database = new DatabaseSync(copy)
  database.exec(`
    UPDATE partner_key SET scopes = 255, digest = '${'e'.repeat(64)}' WHERE id = '${key.id}';
    UPDATE partner SET name = 'Somebody else' WHERE slug = 'other'`)
  database.close()
  const human = await at('verify')
  t.match(human, { code: 1, stdout: '' })
  t.match(human.stderr, `key ${key.id}: scopes: read:profiles → read:partner-widget`)
  t.match(human.stderr, /, digest replaced$/m)
  t.match(human.stderr, 'partner other: name: Other → Somebody else')
  const { error } = documentOf(await at('verify', '--json'))
  t.match(error, {
    code: 'audit_mismatch',
    differences: [
      { partner: 'other', expected: { name: 'Other' }, stored: { name: 'Somebody else' }, broken_at: null },
      { key_id: key.id, expected: { scopes: ['read:profiles'] }, digest_replaced: true },
    ],
    intruders: [],
  })
  const listing = await at('list', '--json')
  for (const { stdout, stderr } of [human, listing]) t.notMatch(stdout + stderr, /digest_?hash/i)

  const gone = new DatabaseSync(copy)
  gone.exec('DROP TABLE audit')
  gone.close()
  const missing = await at('verify', '--json')
  t.equal(missing.code, 1)
  t.match(documentOf(missing).error, {
    code: 'audit_broken',
    detail: /^The store cannot be verified: no such table: audit/,
  })
})

test('the end', async () => {
  await store.close()
  folder.remove()
})

/** `keys import`: lines of another system's keys, checked and imported all or nothing. */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { MAX_IMPORTED_KEYS } from '../../core/admin/import-keys.ts'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { createStore } from '../support/cli-store.ts'
import { programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'

const { url, store, partners, keys } = await createStore({ modules: ['pricing', 'profiles'] })
const folder = temporaryFolder()
const env = { PARTNER_API_STORE: url }
await partners.create({ slug: 'other', name: 'Other', modules: ['widget'] })
await partners.create({ slug: 'gone', name: 'Gone', modules: [] })
await partners.remove('gone')

const secretFile = join(folder, 'hmac.secret')
const secret = randomBytes(24).toString('base64')
writeFileSync(secretFile, `${secret}\r\n`)

const sha256 = (text: string) => createHash('sha256').update(text)
const digest = () => sha256(randomBytes(20).toString('hex')).digest('hex')
const row = (more: object = {}) => ({ partner: 'acme', name: 'Shop', digest: digest(), ...more })
const jsonl = (rows: readonly object[]) => rows.map((each) => `${JSON.stringify(each)}\n`).join('')
const importRows = (rows: readonly object[], ...options: string[]) =>
  programOn(url, { input: jsonl(rows) }).json('keys', 'import', '-', '--algorithm', 'sha256', ...options)
const { run, json } = programOn(url)
const count = async () => (await Array.fromAsync(keys.list())).length

test('every member of a line is imported', async (t) => {
  const text = `sk_live_${randomBytes(24).toString('base64url')}`
  const full = {
    partner: 'acme',
    name: 'Full',
    digest: createHmac('sha256', secret).update(text.slice(8)).digest('base64url'),
    algorithm: 'hmac-sha256',
    prefix: 'sk_live_',
    scopes: ['read:plans'],
    environment: 'test',
    created_at: '2020-01-01T00:00:00Z',
    expires_at: '2098-01-01T00:00:00Z',
    last_used_at: '2024-01-01T00:00:00Z',
    allow: ['192.0.2.0/24'],
    limits: [{ policy: 'key', quota: 5, window_seconds: 60 }],
    hint: text.slice(-4),
    owner: 'Web team',
    tags: ['eu', 'shop'],
  }
  const plain = row({ algorithm: null, scopes: null, hint: null })
  const dry = await importRows([full, plain], '--secret-file', secretFile, '--dry-run')
  t.match(dry.data, {
    dry_run: true,
    issued: 2,
    unchanged: 0,
    lines: [{ line: 1, id: null, name: 'Full' }, {}],
  })
  t.equal(await count(), 0, 'a dry run writes nothing')
  const { data } = await importRows([full, plain], '--secret-file', secretFile)
  const [first, second] = data.lines
  const { digest: _, algorithm: _a, prefix: _p, ...members } = full
  t.match((await run('keys', 'show', first.id, '--json')).stdout, /"hint":"….{4}"/)
  const shown = (await json('keys', 'show', first.id)).data
  const instants = { created_at: '2020-01-01T00:00:00.000Z', expires_at: '2098-01-01T00:00:00.000Z' }
  t.match(shown, { ...members, ...instants, hint: `…${full.hint}`, last_used_at: '2024-01-01T00:00:00.000Z' })
  t.match((await json('keys', 'show', second.id)).data, {
    environment: 'live',
    scopes: ['read:profiles', 'read:plans'],
    allow: [],
    limits: [],
    expires_at: null,
    last_used_at: null,
    hint: '…',
  })
  t.match((await run('keys', 'show', second.id)).stdout, /kind: +live, imported\n/)
  t.equal(
    (await importRows([full, plain], '--secret-file', secretFile)).data.unchanged,
    2,
    'again: nothing changes',
  )
  const found = await store.findImportedKey(text)
  t.equal(found && found.key.id, first.id, 'the line end of the secret file is no part of the secret')
  t.strictSame((await verifyAuditLog(store)).differences, [])
  const { stdout } = await run('audit', 'list', '--json')
  t.notOk(stdout.includes(secret) || stdout.includes(sha256(text).digest('hex')), 'the log shows neither')
})

test('all lines are checked, and an error prevents all of them', async (t) => {
  const native = await keys.issue({ partner: 'acme', name: 'Native', environment: 'live' })
  const known = row()
  await importRows([known])
  const repeated = row()
  const bytes = Buffer.from(repeated.digest, 'hex')
  const before = await count()
  const limit = { policy: 'key', quota: 1, window_seconds: 60 }
  const whole = 'a-whole-key-that-was-pasted-by-mistake-0123456789'
  const cases: readonly (readonly [line: object, error: string])[] = [
    [repeated, ''],
    [row({ digest: bytes.toString('base64') }), ''],
    [row({ digest: bytes.toString('base64url') }), ''],
    [row({ digest: 'ab'.repeat(31) }), 'digest must be SHA-256 in hexadecimal or base64'],
    [row({ digest: whole }), 'digest must be SHA-256 in hexadecimal or base64'],
    [
      row({ digest: '0'.repeat(64) }),
      'digest must not be a placeholder',
    ],
    [
      row({ digest: sha256('').digest('base64') }),
      'digest must not be a placeholder',
    ],
    [row({ hint: whole }), 'hint must be the last four characters of the key'],
    [row({ prefix: 'sk,live' }), 'prefix must have up to 64 visible ASCII characters and no comma'],
    [row({ id: 'Zt81mQv04KsD' }), 'id is not a known field'],
    [row({ partner: 'nobody' }), 'partner must be a partner that exists and is not removed, not "nobody"'],
    [row({ partner: 'gone' }), 'partner must be a partner that exists and is not removed, not "gone"'],
    [row({ scopes: ['read:banner'] }), 'scopes has read:banner, which no active module of acme needs'],
    [row({ allow: ['192.0.2.0/33'] }), 'allow[0]'],
    [
      row({ limits: [{ policy: 'authfail', quota: 1, window_seconds: 1 }] }),
      'limits[0].policy must be key, signup, verify',
    ],
    [row({ expires_at: '2020-01-01T00:00:00Z' }), 'expires_at must be in the future'],
    [row({ created_at: '2098-01-01T00:00:00Z' }), 'created_at must not be in the future'],
    [row({ owner: '' }), 'owner must not be empty'],
    [row({ tags: ['Shop'] }), 'tags[0] must be a tag'],
    [row({ algorithm: 'md5' }), 'algorithm must be sha256 or hmac-sha256, not "md5"'],
    [
      row({ algorithm: 'hmac-sha256' }),
      'algorithm needs a secret of 16 bytes or more, not of 0',
    ],
    [row({ name: native.text }), 'name must not contain a key'],
    [row({ digest: sha256(native.text).digest('hex') }), `digest is that of key ${native.key.id} of acme`],
    [{ ...known, partner: 'other' }, 'digest is that of key'],
    [known, 'digest repeats that of line 24'],
    [row({ scopes: ['read:plans', 'read:plans'] }), 'scopes[1] repeats a scope'],
    [row({ limits: [limit, { ...limit, quota: 2 }] }), 'limits[1] repeats a policy'],
    [{ ...repeated, prefix: 'sk_' }, 'digest repeats that of line 1'],
  ]
  const { code, error } = await importRows(cases.map(([line]) => line))
  t.match({ code, error }, { code: 1, error: { code: 'invalid_content' } })
  const lines = error.lines as { line: number; field: string; reason: string }[]
  for (const [index, [, expected]] of cases.entries()) {
    const found = lines.filter(({ line }) => line === index + 1).map(({ field, reason }) =>
      `${field} ${reason}`
    )
    if (index === 1 || index === 2) {
      t.strictSame(found, ['digest repeats that of line 1'], 'one digest in two forms')
    } else t.ok(expected === '' ? found.length === 0 : found[0]?.startsWith(expected), `${index}: ${found}`)
  }
  t.notOk(JSON.stringify(error).includes(whole), 'what may be a key is not printed')
  t.equal(await count(), before)
  const unknown = row({ limits: ['a', 'b'].map((policy) => ({ ...limit, policy })) })
  const { lines: unknownLines } = (await importRows([unknown])).error
  t.equal((unknownLines as unknown[]).length, 2, 'invalid items are no repetitions')
  const text = await runProgram(['keys', 'import', '-'], { env, input: jsonl([row()]) })
  t.match(
    text.stderr,
    /line 1: algorithm is missing, and the import names none\n {2}Lines without .* --secret-file FILE\.\n$/,
  )
})

test('a digest belongs to one key, under whatever scheme it was imported', async (t) => {
  const known = row()
  const { data: { lines: [{ id }] } } = await importRows([known], '--prefix', 'sk_live_')
  const other = join(folder, 'other.secret')
  writeFileSync(other, randomBytes(24).toString('base64'))
  const hmac = row({ algorithm: 'hmac-sha256' })
  const { data: { lines: [keyed] } } = await importRows([hmac], '--secret-file', secretFile)
  const before = await count()
  const cases: readonly (readonly [line: object, id: string, ...options: string[]])[] = [
    [known, id],
    [known, id, '--prefix', 'sk_'],
    [{ ...known, algorithm: 'hmac-sha256' }, id, '--prefix', 'sk_live_', '--secret-file', secretFile],
    [hmac, keyed.id, '--secret-file', other],
  ]
  for (const [line, id, ...options] of cases) {
    const reason = `is that of key ${id} of acme, under another algorithm, prefix or secret`
    t.match((await importRows([line], ...options)).error.lines, [{ line: 1, field: 'digest', reason }])
  }
  t.equal(await count(), before)
})

test('a key that differs from its line is listed, and --update changes it', async (t) => {
  const line = { ...row(), scopes: ['read:plans', 'read:profiles'], allow: ['192.0.2.1', '192.0.2.2'] }
  const { data: { lines: [{ id }] } } = await importRows([line])
  const differing = async (more: object, ...options: string[]) => {
    const { data: { lines, ...counts } } = await importRows([{ ...line, ...more }], ...options)
    return { fields: lines[0]?.fields ?? [], ...counts }
  }
  const limits = [{ policy: 'key', quota: 5, window_seconds: 60 }]
  const changed = {
    name: 'Till',
    scopes: ['read:plans'],
    expires_at: '2098-01-01T00:00:00Z',
    allow: [],
    limits,
    owner: 'Ops',
    tags: ['till'],
  }
  for (const [field, value] of Object.entries(changed)) {
    t.match(await differing({ [field]: value }), { fields: [field], differs: 1, unchanged: 0 })
  }
  const same = { allow: line.allow.toReversed(), scopes: line.scopes.toReversed(), limits: null }
  t.match(await differing(same), { differs: 0, unchanged: 1 }, 'in any order')
  t.match(await differing({ scopes: null }), { unchanged: 1 }, 'a line without scopes leaves them')
  const head = await store.auditHead()
  t.match(await differing({ scopes: ['read:profiles'] }, '--update'), { updated: 1, fields: ['scopes'] })
  t.equal((await store.auditHead()).sequence, head.sequence + 1, 'only the scope was removed')
  const args = ['keys', 'import', '-', '--algorithm', 'sha256']
  const { stdout } = await runProgram(args, { env, input: jsonl([{ ...line, ...changed }]) })
  t.equal(
    stdout.split('\n')[0],
    `line 1: key ${id} differs in name, scopes, expires_at, allow, limits, owner and tags`,
  )
  t.match(await differing(changed, '--update', '--dry-run'), { updated: 1, fields: { length: 7 } })
  t.match(await keys.show(id), { name: 'Shop', limits: {} })
  t.match(await differing(changed, '--update'), { updated: 1, differs: 0 })
  t.match(await keys.show(id), { name: 'Till', scopes: ['read:plans'], limits: { key: { quota: 5 } } })
  t.match(await differing(changed, '--update'), { updated: 0, unchanged: 1 })
  t.match(
    await differing({ ...changed, owner: null, tags: null }),
    { unchanged: 1 },
    'a line without them leaves them',
  )
  const refused = async (more: object) => {
    const { error } = await importRows([{ ...line, ...more }], '--update')
    return (error.lines as { field: string; reason: string }[]).map(({ field, reason }) =>
      `${field} ${reason}`
    )
  }
  t.match(await refused({ environment: 'test' }), [`environment must be live, which is that of key ${id}`])
  t.match(await refused({ scopes: ['read:banner'] }), [/^scopes has read:banner, which no active module/])
  t.match(await refused({ expires_at: '2020-01-01T00:00:00Z' }), ['expires_at must be in the future'])
  await keys.revoke(id)
  t.match(await refused({}), [`null differs from key ${id}, which is revoked`])
  t.match(
    await differing(changed, '--update'),
    { unchanged: 1 },
    'an equal line of a revoked key is no error',
  )
  t.strictSame((await verifyAuditLog(store)).differences, [])
})

test('secrets are files of 16 bytes and more, and never arguments', async (t) => {
  const path = join(folder, 'short.secret')
  writeFileSync(path, 'fifteen bytes..\n')
  const rows = [row({ algorithm: 'hmac-sha256' })]
  const reason = 'needs a secret of 16 bytes or more, not of 15'
  t.match(await importRows(rows, '--secret-file', path), { code: 1, error: { lines: [{ line: 1, reason }] } })
  t.match(await importRows([row()], '--secret-file', '/dev/zero'), { code: 2 })
  t.match(await importRows([row()], '--secret-file', join(folder, 'none')), {
    code: 2,
    error: { code: 'unreadable_file' },
  })
})

test('a store has at most 8 schemes, and an import at most 50,000 keys', async (t) => {
  const prefixed = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => row({ prefix: `p${from + n}_` }))
  const { schemes } = await store.findDigests([])
  const free = 8 - schemes.length
  t.match((await importRows(prefixed(0, free + 1))).error.lines, [{
    line: free + 1,
    field: null,
    reason: /at most 8/,
  }])
  t.equal((await importRows(prefixed(0, free))).data.issued, free)
  t.equal((await importRows([row({ prefix: 'p0_' })])).code, 0, 'known ones can be used again')
  const many = Array.from({ length: MAX_IMPORTED_KEYS + 1 }, () => row({ partner: 'gone', digest: '1' }))
  t.match((await importRows(many)).error, { line_error_count: MAX_IMPORTED_KEYS + 1 })
})

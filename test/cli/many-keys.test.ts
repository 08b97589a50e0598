/** Changes of the keys that options select. What each change does to a key is tested in core/admin.test.ts. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { PassThrough, Readable, Writable } from 'node:stream'
import { test } from 'tap'
import { dryRun } from '../../cli/dry-run.ts'
import { changeSelected } from '../../cli/keys/selection.ts'
import { Output } from '../../cli/output/print.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { AdminError } from '../../core/admin/error.ts'
import { KEY_ID_PATTERN } from '../../core/keys/format.ts'
import type { Key } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { MAIN, noTerminal, runOnTerminal, temporaryFolder } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { addKeys, keysOf, ROTATED_LINE, runSlowly } from '../support/many-keys.ts'

const now = Date.now()
const DAY = 86_400_000
const folder = temporaryFolder()

/** Counts `key.` entries of a type. */
async function countEntries(store: Store, type: string): Promise<number> {
  return (await store.listAudit(0, 10_000)).filter((entry) => entry.type === type).length
}

test('a command takes a key or options that select keys, and asks', async (t) => {
  const { issue, refuses, run, store } = await createStore()
  const { key: { id } } = await issue({ tags: ['shop'] })
  const expected: Record<string, string> = {}
  for (const name of ['revoke', 'disable', 'rotate', 'enable']) {
    expected[`keys ${name}`] = '2 usage'
    expected[`keys ${name} --yes`] = '2 usage'
    expected[`keys ${name} ${id} --tag shop`] = '2 usage'
    expected[`keys ${name} --tag Shop!`] = '2 usage'
    expected[`keys ${name} --unused 90`] = '2 usage'
    expected[`keys ${name} --state gone`] = '2 usage'
    expected[`keys ${name} --scope read:nothing --yes`] = '2 usage'
    expected[`keys ${name} --partner nobody --yes`] = '1 partner_not_found'
  }
  for (const name of ['revoke', 'disable', 'rotate']) expected[`keys ${name} --tag shop`] = '2 usage'
  expected['keys rotate --tag shop --yes --claim 1h --public-url https://a.example'] = '2 usage'
  await refuses(t, expected)
  t.match(
    (await run('keys', 'revoke', '--tag', 'shop')).stderr,
    /^error: This revokes 1 key of 1 partner\. .*--yes/,
  )
  t.match(await keysOf(store), [{ id, state: 'active' }])
})

test('on a terminal it asks', { skip: noTerminal }, async (t) => {
  const { issue, store, url } = await createStore()
  await issue()
  const command = `'${process.execPath}' '${MAIN}' keys revoke --partner acme`
  const env = { PARTNER_API_STORE: url }
  const refused = await runOnTerminal(command, env, 'to confirm', 'no\n')
  t.match(refused, /This revokes 1 key of 1 partner\.\s+Type revoke to confirm/)
  t.match(await keysOf(store), [{ state: 'active' }])
  await runOnTerminal(command, env, 'to confirm', 'revoke\n')
  t.match(await keysOf(store), [{ state: 'revoked' }])
})

test('keys in force are disabled, enabled and revoked, with an entry each and one receipt', async (t) => {
  const { issue, partners, keys, json, run, store } = await createStore()
  await partners.create({ slug: 'beta', name: 'Beta', modules: [] })
  const ids: string[] = []
  for (const more of [{}, { partner: 'beta', scopes: [] }, { environment: 'test' as const }]) {
    ids.push((await issue({ tags: ['shop'], ...more })).key.id)
  }
  const ended = await issue({ tags: ['shop'] })
  await keys.revoke(ended.key.id)
  await issue()

  const disabled = await json('keys', 'disable', '--tag', 'shop', '--yes', '--wait')
  t.match(disabled, { code: 0, data: { length: 3 }, receipt: { replicas: [] }, skipped: {} })
  t.same(disabled.data.map((key: Key) => [key.id, key.state]), ids.map((id) => [id, 'disabled']))
  t.match(disabled.stderr, 'Changed 3 of 3 keys of 2 partners.')
  t.equal(await countEntries(store, 'key.disabled'), 3)
  t.same(
    (await json('keys', 'disable', '--tag', 'shop', '--yes')).data,
    [],
    'what is done is not selected again',
  )

  const enabled = await run('keys', 'enable', '--partner', 'acme', '--yes', '--wait')
  t.equal(enabled.stdout, `${ids[0]} acme Plugin\n${ids[2]} acme Plugin\n`)
  t.match(enabled.stderr, /^Changed 2 of 2 keys of 1 partner\.\nNo running server .*\nIn effect everywhere/)

  const revoked = await json('keys', 'revoke', '--tag', 'shop', '--environment', 'live', '--yes')
  t.same(revoked.data.map((key: Key) => key.id), [ids[0]], 'disabled keys are not in force')
  const rest = await json('keys', 'revoke', '--tag', 'shop', '--state', 'disabled', 'revoked', '--yes')
  t.same(rest.data.map((key: Key) => key.id), [ids[1]], 'a revoked key does not change')
  t.equal(await countEntries(store, 'key.revoked'), 3)
  t.match(await run('audit', 'verify'), { code: 0 })
})

test('options that select nothing change nothing', async (t) => {
  const { json, issue } = await createStore()
  await issue()
  for (const name of ['revoke', 'disable', 'rotate', 'enable']) {
    const nothing = await json('keys', name, '--unused', '90d', '--wait')
    t.match(nothing, { code: 0, data: { length: 0 }, stderr: `There are no such keys to ${name}.\n` })
  }
})

test('a dry run counts the requests of all selected keys, and changes nothing', async (t) => {
  const { issue, json, run, store, file } = await createStore()
  const ids = [(await issue()).key.id, (await issue()).key.id, (await issue({ tags: ['other'] })).key.id]
  const day = new Date().toISOString().slice(0, 10)
  const count = {
    partner: 'acme',
    environment: 'live' as const,
    day,
    endpoint: 'profiles' as const,
    errors: 0,
  }
  await store.recordUsage(ids.map((keyId, index) => ({ ...count, keyId, requests: 10 ** index })), 'batch')
  const before = readFileSync(file)
  for (const name of ['revoke', 'disable']) {
    const { data } = await json('keys', name, '--partner', 'acme', '--dry-run')
    t.match(data, { dry_run: true, requests: 111, keys_affected: 3 }, name)
    t.same(data.keys.map((key: Key) => key.id), ids.toReversed(), 'the busiest first')
    t.same(data.changes, Array(3).fill(name === 'revoke' ? 'key.revoked' : 'key.disabled'))
  }
  const out = join(folder, 'dry.keys')
  const rotated = await run(
    'keys',
    'rotate',
    '--partner',
    'acme',
    '--overlap',
    '0',
    '--dry-run',
    '--out',
    out,
  )
  t.match(rotated, { code: 0, stdout: /^111 requests .* with 3 keys\./ })
  t.notOk(existsSync(out))
  t.ok(before.equals(readFileSync(file)))
  t.match((await run('keys', 'disable', '--tag', 'none', '--dry-run')).stderr, 'Nothing would change.')
})

test('a dry run judges each change before the next one is made', async (t) => {
  const { issue, store } = await createStore()
  const ids = [(await issue()).key.id, (await issue()).key.id]
  const judged: string[] = []
  const keyUsage: Store['keyUsage'] = (ids, ...period) => {
    judged.push(...ids ?? [])
    return store.keyUsage(ids, ...period)
  }
  await dryRun({ ...store, keyUsage }, 1, { width: Infinity, styleHeading: String }, async (collect) => {
    for (const [index, id] of ids.entries()) {
      await collect([{ type: 'key.revoked', id }])
      t.same(judged, ids.slice(0, index + 1))
    }
  })
})

test('keys are rotated once, however often the command runs', async (t) => {
  const { issue, keys, run, json, store } = await createStore()
  const old = [(await issue()).key, (await issue()).key, (await issue({ environment: 'test' })).key]
  const lost = (await issue()).key.id
  await keys.disable(lost)
  const select = ['keys', 'rotate', '--environment', 'live', '--yes'] as const
  const printed = (await run(...select)).stdout.trim().split('\n').map((text) => ROTATED_LINE.exec(text))
  t.same(printed.map((match) => match?.[1]), [old[0]!.id, old[1]!.id])
  t.same(await Promise.all(old.map(async ({ id }) => (await keys.show(id)).successorId)), [
    ...printed.map((match) => match?.[2]),
    undefined,
  ])
  t.equal(
    store.findKey(printed[0]![2]!) && (await keys.show(printed[0]![2]!)).digest,
    store.sha256(printed[0]![3]!),
  )
  const again = await json(...select)
  t.match(again, { code: 0, data: { length: 0 }, skipped: { key_rotated: 2 } })
  t.match(again.stderr, 'There are no such keys to rotate; skipped: 2 rotated.')
  const others = await run(...select, '--state', 'active', 'retiring', 'disabled')
  t.match(others, { code: 0, stdout: '' })
  t.equal(others.stderr, 'Changed 0 of 3 keys of 1 partner; skipped: 4 rotated; skipped: 1 disabled.\n')
  t.equal(await countEntries(store, 'key.rotated'), 2)
})

test('successors are rotated again a day after the overlap', async (t) => {
  const { store, json, keys } = await createStore()
  const at = (age: number) => createKeyAdministration(store, { actor: 'test', clock: () => now - age * DAY })
  const rotated = async (overlapMs: number) => {
    const { key } = await at(4).issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
    return (await at(3).rotate(key.id, { overlapMs })).key
  }
  const rotate = () => json('keys', 'rotate', '--partner', 'acme', '--overlap', '0', '--yes')
  await rotated(2.5 * DAY)
  t.match(await rotate(), { data: [], skipped: { key_rotated: 1 } }, 'the overlap has ended half a day ago')
  const { id } = await rotated(0.1 * DAY)
  const again = await rotate()
  const made = { old_id: id, id: (await keys.show(id)).successorId }
  t.match(again, { data: [made], skipped: { key_rotated: 1 } })
  t.match(await rotate(), { data: [], skipped: { key_rotated: 2 } }, 'without an overlap, too')
})

test('new keys are written to a new file that only its owner can read', async (t) => {
  const { issue, json, run, store } = await createStore()
  const ids = [(await issue({ tags: ['a'] })).key.id, (await issue({ tags: ['a'] })).key.id]
  const out = join(folder, 'new.keys')
  const rotate = ['keys', 'rotate', '--tag', 'a', '--yes', '--out', out] as const
  const { data } = await json(...rotate)
  t.equal(statSync(out).mode & 0o777, 0o600)
  const lines = readFileSync(out, 'utf8').split('\n')
  t.same(
    lines.slice(0, 2).map((text) => ROTATED_LINE.exec(text)?.slice(1, 3)),
    data.map((each: Rotated) => [each.old_id, each.id]),
  )
  t.same(data.map((each: Rotated) => each.old_id), ids)
  t.match(data, [{ out, key: undefined }, { out, key: undefined }])
  t.equal(lines[2], '')
  t.match(await json(...rotate), { code: 1, error: { code: 'file_not_created' } })

  await issue({ tags: ['b'] })
  const none = join(folder, 'none.keys')
  const late = await json('keys', 'rotate', '--tag', 'b', '--yes', '--out', none, '--expires', '2020-01-01')
  t.match(late, { code: 1, data: undefined, error: { code: 'invalid_expiry' } })
  t.match(await run('keys', 'rotate', '--tag', 'c', '--yes', '--out', none), { code: 0 })
  t.notOk(existsSync(none), 'a file without a key is removed')
  const quiet = join(folder, 'quiet.keys')
  t.match(await run('keys', 'rotate', '--tag', 'b', '--yes', '--out', quiet, '--quiet'), { code: 0 })
  const { stdout } = await run('keys', 'list', '--tag', 'b', '--json')
  t.equal(readFileSync(quiet, 'utf8').split('_')[2], JSON.parse(stdout).data[1].id)
  t.equal(await countEntries(store, 'key.rotated'), 3)
})

for (const json of [false, true]) {
  test(`each new key is printed before the next one is made, ${json ? 'as JSON' : 'a line each'}`, async (t) => {
    const { issue, url, store } = await createStore()
    for (let count = 0; count < 5; count++) await issue()
    const counts: number[] = []
    const args = ['keys', 'rotate', '--partner', 'acme', '--yes', ...json ? ['--json'] : []]
    const { code, stdout } = await runSlowly(url, args, async (text) => {
      if (text.includes('spk_live_')) counts.push(await countEntries(store, 'key.rotated'))
    })
    t.same([code, counts], [0, [1, 2, 3, 4, 5]])
    if (json) t.equal(JSON.parse(stdout).data.length, 5)
  })
}

test('what other operators do meanwhile is kept', async (t) => {
  const { issue, keys, url, store } = await createStore()
  const ids = []
  for (let count = 0; count < 5; count++) ids.push((await issue()).key.id)
  const [, revoked, rotated, disabled] = ids as [string, string, string, string]
  let isFirst = true
  const args = ['keys', 'rotate', '--partner', 'acme', '--yes', '--json']
  const { code, stdout } = await runSlowly(url, args, async () => {
    if (!isFirst) return
    isFirst = false
    await keys.revoke(revoked)
    await keys.rotate(rotated)
    await keys.disable(disabled)
    await issue({ name: 'New' })
  })
  const { data, skipped } = JSON.parse(stdout)
  t.same([code, data.map((each: Rotated) => each.old_id)], [0, [ids[0], ids[4]]])
  t.same(skipped, { key_revoked: 1, key_rotated: 1, key_disabled: 1 })
  t.equal(await countEntries(store, 'key.rotated'), 3, 'and a key that was issued meanwhile is not rotated')
})

test('keys that others keep changing are reported, and the exit code is 1', async (t) => {
  const { issue, store, url } = await createStore()
  const ids = [(await issue()).key.id, (await issue()).key.id]
  let stdout = ''
  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      stdout += text
      done()
    },
  })
  const io = { env: {}, stdin: Readable.from([]), stdout: stream, stderr: new PassThrough() }
  const invocation = {
    io,
    output: new Output(io, true),
    wait: false,
    operator: { actor: 'test' },
    storeUrl: url,
  }
  const selected = changeSelected(
    store,
    invocation,
    ['disable', 'active'],
    { yes: true },
    async function* (page, skip) {
      for (const { id } of page) {
        if (id === ids[0]) yield { data: { id }, text: '' }
        else await Promise.reject(new AdminError('concurrent_change', 'Try again.')).catch(skip(id))
      }
    },
  )
  const error = await selected.catch((error) => error)
  t.match(error, { exitCode: 1, code: 'concurrent_change' })
  await invocation.output.error(error)
  t.match(JSON.parse(stdout), { data: [{ id: ids[0] }], error: { code: 'concurrent_change' } })
})

test('a reader that goes away is told which key is lost', async (t) => {
  const { issue, url, store, keys } = await createStore()
  const ids = [(await issue()).key.id, (await issue()).key.id, (await issue()).key.id]
  let lines = 0
  const { code, stderr } = await runSlowly(
    url,
    ['keys', 'rotate', '--partner', 'acme', '--yes'],
    () => {
      if (++lines === 2) throw Object.assign(new Error('closed'), { code: 'EPIPE' })
      return Promise.resolve()
    },
  )
  const lost = (await keys.show(ids[1]!)).successorId
  t.equal(code, 1)
  t.match(
    stderr,
    `Key ${lost} was issued but is lost. To replace it: partner-api keys rotate ${lost} --overlap 0\n`,
  )
  t.equal(await countEntries(store, 'key.rotated'), 2)
})

interface Rotated {
  readonly old_id: string
  readonly id: string
}

test('a dry run of a rotation keeps no ids of keys', async (t) => {
  const { store, url } = await createStore()
  await addKeys(store, 20)
  const added = t.capture(Set.prototype, 'add', Set.prototype.add)
  const { code, stdout } = await runSlowly(
    url,
    ['keys', 'rotate', '--partner', 'acme', '--dry-run', '--json'],
    () => Promise.resolve(),
  )
  t.same([code, JSON.parse(stdout).data.changes.length], [0, 40])
  t.same(added().filter(({ args: [id] }) => KEY_ID_PATTERN.test(String(id))), [])
})

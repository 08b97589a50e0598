/**
 * The commands for partners, modules, keys and scopes, and the operator in the audit log.
 * Their rules are tested in core/admin.test.ts.
 */
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { hasValidChecksum } from '../../core/keys/format.ts'
import { storedSeconds } from '../../core/limits/partner-quotas.ts'
import {
  MAIN,
  noTerminal,
  preload,
  programOn,
  runOnTerminal,
  runProcess,
  temporaryFolder,
} from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'

const names = (rows: readonly { readonly name: string }[]) => rows.map(({ name }) => name)

test('quotas of a partner are set for it alone, and shown with what is used and left', async (t) => {
  const file = join(temporaryFolder(), 'quotas.db')
  const { run, json } = programOn(`sqlite:${file}`)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--limit', 'month=30')
  const key = (await json('keys', 'issue', 'acme', '--name', 'live')).data.id
  const test = (await json('keys', 'issue', 'acme', '--name', 'test', '--test')).data.id
  const month = { policy: 'month', quota: 30, window_seconds: null }
  const unused = [{ ...month, used: 0, remaining: 30, resets_at: /^\d{4}-\d\d-01T00:00:00\.000Z$/ }]
  const shown = await json('partners', 'show', 'acme')
  t.match(shown.data, { limits: [month], quotas: unused })
  t.notOk(existsSync(`${file}-servers`), 'nothing is created to read them')
  t.match((await json('keys', 'show', key)).data.quotas, unused)
  t.strictSame((await json('keys', 'show', test)).data.quotas, [], 'a test key has none')
  t.match((await json('reports', 'acme')).data.quotas, unused)

  const store = await openSqliteStore(file)
  const subject = `acme ${new Date().toISOString().slice(0, 7)}`
  const windowSeconds = storedSeconds({ name: 'month', windowSeconds: 1 })
  await store.quotas.leaseQuota({ policy: 'month', subject, quota: 30, windowSeconds, wanted: 12 })
  await store.close()
  t.match(
    (await run('partners', 'show', 'acme')).stdout,
    /quotas: +month=30 \(12 used, 18 left until .* UTC\)/,
  )
  const update = ['partners', 'update', 'acme', '--dry-run', '--limit']
  const short = await json(...update, 'month=12', '--limit', 'partner=5/60')
  t.match(short.data, {
    is_lower_bound: true,
    quotas: [{ policy: 'partner', used: null }, { policy: 'month', quota: 12, used: 12, remaining: 0 }],
  })
  t.match(await run(...update, 'month=12'), {
    stderr: /month=12 \(12 used, 0 left .*\nThe quota is used up/,
  })

  const higher = (await json(...update, 'month=31')).data
  t.match(higher, { requests: 0, is_lower_bound: false, quotas: [] }, 'a higher quota refuses nothing')
  const renamed = await json('partners', 'update', 'acme', '--name', 'Acme Travel', '--dry-run')
  t.match(renamed.data, { requests: 0, is_lower_bound: false, quotas: [] }, 'it has a quota, and keeps it')

  for (const wrong of ['month=10/60', 'partner=5', 'partner=5/2678401', 'month=0/5']) {
    t.equal((await run('partners', 'update', 'acme', '--limit', wrong)).code, 2, wrong)
  }
  const { stderr } = await run('partners', 'update', 'acme', '--limit', 'month=30,000')
  t.match(stderr, /For a calendar month, it is month=QUOTA\.$/m)
  const command = /partner-api partners update SLUG --limit month=5000$/m
  t.match(await run('keys', 'limit', key, '--limit', 'month=5,000'), { code: 2, stderr: command })
  t.match(await run('serve', '--limit', 'month=5000'), { code: 2, stderr: command })
})

test('partners are created, listed, changed and suspended', async (t) => {
  const { run, json } = programOn(`sqlite:${join(temporaryFolder(), 'new.db')}`)
  const created = await json(
    'partners',
    'create',
    'acme',
    '--name',
    'Acme Travel',
    '--module',
    'profiles',
    'banner',
    '--module',
    'profiles',
    '--limit',
    'key=1200/30',
    '--limit',
    'verify=0',
  )
  t.match(created, {
    code: 0,
    data: {
      slug: 'acme',
      name: 'Acme Travel',
      state: 'active',
      modules: ['profiles', 'banner'],
      limits: [
        { policy: 'key', quota: 1200, window_seconds: 30 },
        { policy: 'verify', quota: 0, window_seconds: 60 },
      ],
      created_at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    },
  })
  t.equal((await run('partners', 'create', 'wide', '--name', 'ひろい \u202eName')).code, 0)
  const list = await run('partners', 'list')
  t.match(
    list.stdout,
    /^SLUG +NAME +STATE +MODULES +TAGS\nacme +Acme Travel +active +profiles banner +–\nwide /,
  )
  t.notMatch(list.stdout, '\u202e')
  t.same(names((await json('partners', 'list')).data), ['Acme Travel', 'ひろい \u202eName'])
  t.equal((await json('partners', 'suspend', 'acme')).data.state, 'suspended')
  t.match((await run('partners', 'show', 'acme')).stdout, /state: +suspended/)
  t.equal((await json('partners', 'resume', 'acme')).data.state, 'active')
  const updated = await json('partners', 'update', 'acme', '--name', 'Acme Journeys', '--limit', 'signup=9/9')
  t.match(updated, { code: 0, data: { name: 'Acme Journeys', limits: { length: 3 } } })
  const cleared = await run('partners', 'update', 'acme', '--clear-limit', 'key', 'signup')
  t.match(cleared, { code: 0, stdout: /name: +Acme Journeys\n(.*\n)*limits: +verify=0\n/ })
})

test('details of partners and keys are set, shown, listed by and removed', async (t) => {
  const { run, json } = await createStore({ modules: ['profiles'] })
  const details = [
    '--contact',
    'dev@acme.example',
    '--external-id',
    'crm 7',
    '--note',
    'Ask Ada',
    '--tag',
    'travel',
    'eu',
  ]
  const noted = { contact: 'dev@acme.example', tags: ['eu', 'travel'], external_id: 'crm 7', note: 'Ask Ada' }
  t.match((await json('partners', 'create', 'beta', '--name', 'Beta', ...details)).data, {
    ...noted,
    self_service: [],
  })
  const allowed = await json('partners', 'update', 'beta', '--self-service', 'rotate', 'revoke')
  t.match(allowed.data, { ...noted, self_service: ['revoke', 'rotate'] })
  const shown = (await run('partners', 'show', 'beta')).stdout
  t.match(
    shown,
    /contact: +dev@acme\.example\ntags: +eu travel\nexternal id: +crm 7\nnote: +Ask Ada\nself-service: +revoke/,
  )
  t.same((await json('partners', 'list', '--tag', 'eu')).data.map(({ slug }: { slug: string }) => slug), [
    'beta',
  ])
  t.match(await run('partners', 'list', '--tag', 'us'), { code: 0, stdout: '', stderr: 'no such partners' })
  const removed = ['--no-contact', '--no-external-id', '--no-note', '--no-tag', '--no-self-service']
  const none = { contact: null, tags: [], external_id: null, note: null, self_service: [] }
  t.match((await json('partners', 'update', 'beta', ...removed)).data, none)
  t.match(
    (await run('audit', 'list')).stdout,
    /partner\.updated +beta +contact note +external_id: crm 7 → none, tags: eu travel → none/,
  )

  const issued = await json(
    'keys',
    'issue',
    'acme',
    '--name',
    'n',
    '--owner',
    'Web team',
    '--tag',
    'shop',
    'a.b',
  )
  t.match(issued.data, { owner: 'Web team', tags: ['a.b', 'shop'] })
  const { id } = issued.data
  t.match((await run('keys', 'show', id)).stdout, /owner: +Web team\ntags: +a\.b shop\n/)
  t.same((await json('keys', 'list', '--tag', 'shop')).data.map((key: { id: string }) => key.id), [id])
  t.match(await run('keys', 'list', 'acme', '--tag', 'sho'), { code: 0, stdout: '', stderr: 'no such keys' })
  t.match((await json('keys', 'update', id, '--owner', 'Ops', '--no-tag')).data, { owner: 'Ops', tags: [] })
  t.match((await json('keys', 'update', id, '--no-owner', '--tag', 'x')).data, { owner: null, tags: ['x'] })
  t.match(await json('partners', 'update', 'acme'), {
    code: 2,
    error: { detail: /pass --name, .*--self-service\.$/ },
  })
  t.match(await json('partners', 'update', 'acme', '--self-service', 'issue'), { code: 2 })
  t.match((await json('keys', 'update', id, '--tag', 'A')).error, { code: 'invalid_details' })
  t.match(await run('audit', 'verify'), { code: 0 })
})

test('every error has its exit code', async (t) => {
  const { partners, keys, issue, run, json, refuses } = await createStore({ modules: ['profiles'] })
  await partners.create({ slug: 'gone', name: 'Gone', modules: [] })
  await partners.remove('gone')
  const [{ key: { id } }, { key: off }, { key: revoked }] = [await issue(), await issue(), await issue()]
  await keys.disable(off.id)
  await keys.revoke(revoked.id)
  const usage = [
    'partners create',
    'partners create other',
    'partners create other --name N --module nothing',
    'partners create other --name N --limit authfail=1/1',
    'partners create other --name N --limit key=1',
    'partners create other --name N --limit key=1/0',
    'partners list extra',
    'partners update acme',
    'partners update acme --limit key=1/1 --clear-limit key',
    'partners update acme --clear-limit authfail',
    'partners update acme --limit key=many',
    'modules activate acme nothing',
    'modules activate acme',
    'keys issue acme',
    'keys issue acme --name n --scope read:everything',
    'keys revoke',
    'keys rotate',
    'keys issue acme --name n --expires 3weeks',
    'keys issue acme --name n --expires 0',
    'keys issue acme --name n --expires 2026-02-30',
    `keys rotate ${id} --overlap long`,
    `keys update ${id}`,
    `keys update ${id} --never --expires 1h`,
    `keys limit ${id}`,
    `keys update ${id} --clear-allow --allow 192.0.2.1`,
    `keys update ${id} --expires tomorrow`,
    `keys limit ${id} --limit authfail=1/1`,
    `scopes grant ${id} nothing`,
    `scopes remove ${id}`,
  ]
  await refuses(t, {
    ...Object.fromEntries(usage.map((command) => [command, '2 usage'])),
    'partners create acme --name Again': '1 partner_exists',
    'partners create No_Slug --name N': '1 invalid_slug',
    'partners show nobody': '1 partner_not_found',
    'partners suspend nobody': '1 partner_not_found',
    'partners remove nobody --yes': '1 partner_not_found',
    'partners update gone --name N': '1 partner_removed',
    'modules deactivate nobody banner': '1 partner_not_found',
    'keys issue nobody --name n': '1 partner_not_found',
    'keys issue acme --name n --scope read:plans': '1 module_inactive',
    'keys issue acme --name n --allow 192.0.2.0/33': '1 invalid_address_range',
    'keys list nobody': '1 partner_not_found',
    'keys show nothing': '1 key_not_found',
    'keys update nothing --name n': '1 key_not_found',
    [`keys update ${id} --expires 2020-01-01`]: '1 invalid_expiry',
    [`keys enable ${revoked.id}`]: '1 key_revoked',
    [`keys rotate ${off.id}`]: '1 key_disabled',
    'keys rotate nothing': '1 key_not_found',
    'keys limit nothing --clear-limit key': '1 key_not_found',
    'scopes show nothing': '1 key_not_found',
  })
  const twice = await run('keys', 'limit', 'x', '--limit', 'key=1/60', '--limit', 'key=1/60')
  t.match(twice, { code: 2, stderr: /The limit key is set twice\./ })
  const zero = await json('keys', 'limit', 'nothing', '--limit', 'key=0/60')
  t.match(zero, { code: 2, error: { detail: /key=0 turns the limit off/ } })
})

test('partners remove needs --yes and revokes the keys that have not ended', async (t) => {
  const { partners, keys, issue, run, json } = await createStore()
  const { key: { id } } = await issue()
  await keys.rotate((await issue()).key.id, { overlapMs: 0 })
  t.match(await run('partners', 'remove', 'acme'), { code: 2, stdout: '', stderr: /revokes 2 keys.*--yes/ })
  t.equal((await partners.show('acme')).state, 'active')
  const removed = await json('partners', 'remove', 'acme', '--yes')
  t.match(removed, { code: 0, data: { slug: 'acme', state: 'removed' } })
  t.equal((await keys.show(id)).state, 'revoked')
  t.match(await run('partners', 'remove', 'acme', '--yes'), { code: 0, stderr: 'revoked no key' })
})

test('partners remove asks for confirmation on a terminal', { skip: noTerminal }, async (t) => {
  const { url, partners } = await createStore()
  const command = `'${process.execPath}' '${MAIN}' partners remove acme; echo "exit $?"; stty -a`
  const answer = (typed: string) => runOnTerminal(command, { PARTNER_API_STORE: url }, 'to confirm: ', typed)
  for (const shown of await Promise.all(['yes\r', '\r', '\u0004'].map(answer))) {
    t.match(shown, /This removes partner acme \(Acme\) and revokes no key\..*Nothing was changed.*exit 1/s)
  }
  t.match(await answer('\u0003'), /exit 130.* icanon .* echo /s)
  t.equal((await partners.show('acme')).state, 'active')
  t.match(await answer('acme\r'), 'exit 0')
  t.equal((await partners.show('acme')).state, 'removed')
})

test('modules list, activate and deactivate', async (t) => {
  const { run, json } = await createStore({ modules: ['profiles', 'banner'] })
  t.equal((await json('modules', 'list')).data.length, 8)
  const activated = await json('modules', 'activate', 'acme', 'pricing', 'countries')
  t.same(activated.data.modules, ['profiles', 'banner', 'countries', 'pricing'])
  const deactivated = await json('modules', 'deactivate', 'acme', 'pricing')
  t.same(deactivated.data.modules, ['profiles', 'banner', 'countries'])
  const { data } = await json('modules', 'list', 'acme')
  t.same(data[5], { module: 'pricing', active: false, scope: 'read:plans', feature: 'Pricing' })
  t.match((await run('modules', 'list', 'acme')).stdout, /countries +yes +read:countries/)
})

test('modules are defined, used as the built-in ones, and forgotten', async (t) => {
  const { run, json } = await createStore({ modules: ['banner'] })
  const orders = { module: 'orders', scope: 'read:orders', feature: 'Orders' }
  const define = ['modules', 'define', 'orders', '--scope', 'read:orders', '--feature', 'Orders']
  t.match(await json(...define, '--wait'), { code: 0, data: orders, receipt: { replicas: [] } })
  t.strictSame((await json('modules', 'list')).data.slice(8), [orders])
  t.strictSame((await json('scopes', 'list')).data.slice(8), [orders])
  t.match((await json('modules', 'activate', 'acme', 'orders')).data, { modules: ['banner', 'orders'] })
  const { data: { id, scopes } } = await json('keys', 'issue', 'acme', '--name', 'n')
  t.strictSame(scopes, ['read:banner', 'read:orders'])
  t.match((await run('scopes', 'show', id)).stdout, /read:orders +yes +orders/)
  t.same((await json('keys', 'list', '--scope', 'read:orders')).data.length, 1)
  const refused = await json('modules', 'forget', 'orders')
  t.match(refused, {
    code: 1,
    error: { code: 'module_in_use', remedy: { command: 'modules deactivate', args: ['acme', 'orders'] } },
  })
  await run('modules', 'deactivate', 'acme', 'orders')
  await run('scopes', 'remove', id, 'read:orders')
  t.match(await json('modules', 'forget', 'orders'), { code: 0, data: { module: 'orders', forgotten: true } })
  t.match((await run('modules', 'activate', 'acme', 'order')).stderr, /no module "order"/)
  t.match(await run('audit', 'verify'), { code: 0 })
})

test('keys are issued, shown, disabled, enabled and revoked', async (t) => {
  const { file, run, json } = await createStore({ modules: ['profiles', 'banner'], keyPrefix: 'acme' })
  t.match(await run('keys', 'list'), { code: 0, stdout: '', stderr: 'no keys' })
  const quiet = await run('keys', 'issue', 'acme', '--name', 'first', '--quiet')
  t.match(quiet, { code: 0, stderr: '', stdout: /^acme_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}\n$/ })
  const first = quiet.stdout.trim()
  t.ok(hasValidChecksum(first))
  const id = first.split('_')[2]!
  const issued = await json(
    'keys',
    'issue',
    'acme',
    '--name',
    'second',
    '--test',
    '--expires',
    '90d',
    '--scope',
    'read:profiles',
    '--allow',
    '192.0.2.0/24',
    '2001:db8::/32',
    '--limit',
    'key=5/10',
  )
  t.match(issued, {
    code: 0,
    data: {
      key: /^acme_test_/,
      partner: 'acme',
      name: 'second',
      environment: 'test',
      hint: `…${issued.data.key.slice(-4)}`,
      state: 'active',
      scopes: ['read:profiles'],
      allow: ['192.0.2.0/24', '2001:db8::/32'],
      limits: [{ policy: 'key', quota: 5, window_seconds: 10 }],
      rotation: null,
      last_used_at: null,
    },
  })
  t.equal(Date.parse(issued.data.expires_at) - Date.parse(issued.data.created_at), 90 * 86_400_000)
  const human = await run('keys', 'issue', 'acme', '--name', 'third')
  t.equal(human.stdout.split(/acme_live_\w+/).length, 2, 'the key is printed once')
  t.match(human.stdout, /scopes: +read:profiles read:banner\n/)
  t.match(human.stderr, 'shown only once')

  const listed = (await json('keys', 'list', 'acme')).data
  t.same(names(listed), ['first', 'second', 'third'])
  const { id: third } = listed[2]
  await run('keys', 'rotate', third, '--overlap', '7d')
  const table = (await run('keys', 'list')).stdout
  const line = new RegExp(
    `^${id} +acme +first +live +…${first.slice(-4)} +active +2 +never +never +0 +– +–$`,
    'm',
  )
  t.match(table, line)
  t.match(table, new RegExp(`^${third} .*retiring +2 +in 6 days +never +0 +– +\\w{12}, never used$`, 'm'))
  t.match(table, new RegExp(`^${issued.data.id} .*active +1 +in 89 days +never +0 +– +–$`, 'm'))
  t.equal((await json('keys', 'disable', id)).data.state, 'disabled')
  t.equal((await json('keys', 'enable', id)).data.state, 'active')
  t.equal((await json('keys', 'revoke', id)).data.state, 'revoked')
  t.match((await run('keys', 'show', id)).stdout, /state: +revoked/)
  const stored = [file, `${file}-wal`].map((name) => readFileSync(name, { encoding: 'latin1', flag: 'a+' }))
  for (const key of [first, issued.data.key]) t.notOk(stored.join().includes(key.slice(-38)), 'no secret')
})

test('keys rotate prints a successor and ends the key after the overlap', async (t) => {
  const { issue, run, json, store } = await createStore()
  const { key: old } = await issue({ environment: 'test', expiresAt: Date.now() + 86_400_000 })
  const rotated = await json('keys', 'rotate', old.id, '--overlap', '2h')
  t.match(rotated, {
    code: 0,
    data: {
      key: /^spk_test_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
      id: rotated.data.key.split('_')[2],
      rotation: null,
      expires_at: new Date(old.expiresAt!).toISOString(),
    },
  })
  const { data } = await json('keys', 'show', old.id)
  t.match(data, { state: 'retiring', rotation: { successor_id: rotated.data.id } })
  t.equal(Date.parse(data.rotation.retires_at) - Date.parse(rotated.data.created_at), 7_200_000)
  const quiet = await run('keys', 'rotate', rotated.data.id, '--overlap', '0', '--expires', '90d', '--quiet')
  t.match(quiet, { code: 0, stderr: '', stdout: /^spk_test_\w{51}\n$/ })
  t.equal((await json('keys', 'show', rotated.data.id)).data.state, 'expired')
  const last = quiet.stdout.split('_')[2]!
  const human = await run('keys', 'rotate', last)
  t.equal(human.stdout.split(/spk_test_\w+/).length, 2, 'the key is printed once')
  const usedAt = Date.now() - 60_000
  await store.recordKeyUses(new Map([[rotated.data.id, usedAt]]))
  const relatives = {
    predecessor: { id: rotated.data.id, state: 'expired', last_used_at: new Date(usedAt).toISOString() },
    successor: { id: /^\w{12}$/, state: 'active', last_used_at: null },
  }
  t.match((await json('keys', 'show', last)).data, relatives)
  const listed = (await json('keys', 'list', 'acme')).data
  t.match(listed, [{ id: old.id, predecessor: null }, {}, { id: last, ...relatives }, { successor: null }])
  t.match(
    (await run('keys', 'show', last)).stdout,
    /predecessor: +\w{12}, last used: \d.*\nsuccessor: .*: never\n/,
  )
  t.match(human.stderr, `Key ${last} works until`)
})

test('keys update and limit change a key', async (t) => {
  const { issue, run, json } = await createStore()
  const { key: { id } } = await issue({ allow: ['192.0.2.1'], expiresAt: Date.now() + 86_400_000 })
  const update = async (...args: string[]) => (await json('keys', 'update', id, ...args)).data
  const allow = ['192.0.2.0/24', '2001:db8::/32']
  const ends = { name: 'Shop', allow, expires_at: '2099-12-31T23:59:59.999Z' }
  t.match(await update('--name', 'Shop', '--allow', ...allow, '--expires', '2099-12-31'), ends)
  t.match(await update('--clear-allow', '--expires', '2099-12-31T12:00:00+02:00'), {
    name: 'Shop',
    allow: [],
    expires_at: '2099-12-31T10:00:00.000Z',
  })
  t.match(await update('--never'), { name: 'Shop', expires_at: null })
  const before = Date.now()
  const end = Date.parse((await update('--expires', '2h')).expires_at)
  t.ok(end >= before + 7_200_000 && end <= Date.now() + 7_200_000)

  const limited = await json('keys', 'limit', id, '--limit', 'key=5/10', '--limit', 'signup=0')
  t.match(limited.data.limits, [{ quota: 5, window_seconds: 10 }, { policy: 'signup', quota: 0 }])
  const changed = await run('keys', 'limit', id, '--clear-limit', 'signup', '--limit', 'verify=9/60')
  t.match(changed, { code: 0, stdout: /limits: +key=5\/10 verify=9\/60\n/ })
})

test('what is taken from a retiring key stays with its successors, and the command to take it there is named', async (t) => {
  const { issue, run, keys } = await createStore({ modules: ['profiles', 'banner'] })
  const { key: { id } } = await issue()
  const { key: former } = await keys.rotate(id)
  const { key: successor } = await keys.rotate(id, { replaces: former.id })
  const cuts = [
    ['scopes', 'remove', id, 'read:banner'],
    ['keys', 'update', id, '--allow', '192.0.2.0/24', '--expires', '2099-12-31T12:00:00.000Z'],
    ['keys', 'limit', id, '--limit', 'key=5/60', '--clear-limit', 'signup'],
  ]
  for (const cut of cuts) {
    const { stderr } = await run(...cut)
    for (const kept of [former, successor]) {
      const command = cut.join(' ').replace(id, kept.id)
      t.ok(
        stderr.includes(`Key ${kept.id}, made by`) && stderr.includes(`: partner-api ${command}\n`),
        command,
      )
    }
  }
  t.equal((await run('keys', 'update', id, '--name', 'Other')).stderr, '', 'a name is no right')
  t.equal(
    (await run('scopes', 'remove', successor.id, 'read:banner')).stderr,
    '',
    'an active key has no successor',
  )
})

test('scopes show, grant and remove', async (t) => {
  const { issue, run, json } = await createStore({ modules: ['profiles', 'banner', 'countries'] })
  const { data } = await json('scopes', 'list')
  t.same(data[5], { scope: 'read:plans', module: 'pricing', feature: 'Pricing' })
  const { key: { id } } = await issue({ scopes: ['read:profiles'] })
  const granted = await json('scopes', 'grant', id, 'read:banner', 'read:countries')
  t.same(granted.data.scopes, ['read:profiles', 'read:banner', 'read:countries'])
  const left = await json('scopes', 'remove', id, 'read:countries')
  t.same(left.data.scopes, ['read:profiles', 'read:banner'])
  await run('modules', 'deactivate', 'acme', 'banner')
  t.same((await json('scopes', 'show', id)).data, [
    { scope: 'read:profiles', in_force: true, module: 'profiles' },
    { scope: 'read:banner', in_force: false, module: 'banner' },
  ])
  t.match((await run('scopes', 'show', id)).stdout, /read:banner +no: module inactive/)
  const { key: bare } = await issue({ scopes: [] })
  t.match(await run('scopes', 'show', bare.id), { code: 0, stdout: /^$/, stderr: 'scopes' })
})

test('--out writes the key to a new file that only its owner may read', async (t) => {
  const { file, keys, run, json, refuses } = await createStore()
  const path = (name: string) => join(file, '..', name)
  const issued = await json('keys', 'issue', 'acme', '--name', 'a', '--out', path('a.key'))
  const text = readFileSync(path('a.key'), 'utf8')
  t.match(text, /^spk_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}\n$/)
  t.equal(statSync(path('a.key')).mode & 0o777, 0o600)
  t.match(issued, {
    code: 0,
    data: { id: text.split('_')[2], out: path('a.key'), name: 'a', key: undefined },
  })
  const rotated = await run('keys', 'rotate', issued.data.id, '--out', path('b.key'))
  t.match(rotated, { code: 0, stdout: `out:`, stderr: `The only copy of the key is in ${path('b.key')}` })
  for (const { stdout, stderr } of [issued, rotated]) t.notMatch(stdout + stderr, /_[0-9A-Za-z]{38}/)
  const quiet = await run('keys', 'issue', 'acme', '--name', 'c', '--out', path('c.key'), '--quiet')
  t.match(quiet, { code: 0, stdout: '', stderr: '' })

  // Existing files and links are refused, and no key is issued without its file.
  writeFileSync(path('other'), 'mine')
  symlinkSync(path('nowhere'), path('link'))
  const count = (await Array.fromAsync(keys.list())).length
  const next = readFileSync(path('b.key'), 'utf8').split('_')[2]
  for (const name of ['other', 'link', 'no/folder.key'].map(path)) {
    await refuses(t, {
      [`keys issue acme --name d --out ${name}`]: '1 file_not_created',
      [`keys rotate ${next} --out ${name}`]: '1 file_not_created',
    })
  }
  for (const out of ['', '-']) {
    const refused = await json('keys', 'issue', 'acme', '--name', 'd', '--out', out)
    t.match(refused, { code: 2, error: { detail: /path of a new file/ } })
  }
  const lost = await json('keys', 'issue', 'acme', '--name', 'd', '--out', path('nowhere/d.key'))
  t.match(lost.error.detail, `there is no folder ${path('nowhere')}.`)
  t.equal(readFileSync(path('other'), 'utf8'), 'mine')
  t.notOk(existsSync(path('nowhere')))
  await refuses(t, { [`keys issue nobody --name d --out ${path('d.key')}`]: '1 partner_not_found' })
  t.notOk(existsSync(path('d.key')), 'a refused command leaves no file')
  t.equal((await Array.fromAsync(keys.list())).length, count)
})

test('if the file cannot be written, the message names the issued key', {
  skip: existsSync('/dev/full') ? false : '/dev/full does not exist',
}, async (t) => {
  const { file, url, keys } = await createStore()
  // Simulates a disk that fills up after the file was created.
  const full = "import fs from 'node:fs/promises';import { syncBuiltinESMExports } from 'node:module';" +
    "const { open } = fs; fs.open = () => open('/dev/full', 'w'); syncBuiltinESMExports()"
  const args = ['keys', 'issue', 'acme', '--name', 'e', '--out', join(file, '../e.key')]
  const ended = await runProcess(args, { env: { PARTNER_API_STORE: url }, ...preload(full) })
  const { id } = (await Array.fromAsync(keys.list({ partner: 'acme' }))).find(({ name }) => name === 'e')!
  t.match(ended, { code: 1, stdout: '', stderr: `Key ${id} was issued` })
  t.match(ended.stderr, `partner-api keys rotate ${id} --overlap 0`)
})

test('the audit log names the system user, or --actor', async (t) => {
  const { store, run, json } = await createStore()
  const { sequence } = await store.auditHead()
  for (const actor of [undefined, 'Ada “🤖”', 'x'.repeat(200)]) {
    t.equal((await run('partners', 'resume', 'acme', ...(actor ? ['--actor', actor] : []))).code, 0)
    t.equal((await run(...(actor ? ['--actor', actor] : []), 'partners', 'suspend', 'acme')).code, 0)
  }
  const head = await store.auditHead()
  const actors = (await store.listAudit(sequence, 100)).map(({ actor }) => actor)
  t.same(new Set(actors), new Set([userInfo().username, 'Ada “🤖”', 'x'.repeat(200)]))
  for (const actor of ['', ' ', 'a\nb', 'a\u0007', 'x'.repeat(201)]) {
    const refused = await json('partners', 'resume', 'acme', '--actor', actor)
    t.match(refused, { code: 2, error: { code: 'usage', detail: /1 to 200 characters/ } })
  }
  t.same(await store.auditHead(), head, 'the log is unchanged')
})

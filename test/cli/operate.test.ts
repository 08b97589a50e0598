import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { hasValidChecksum } from '../../core/keys/format.ts'
import { documentOf, type Ended, runProcess, runProgram, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const file = join(folder.path, 'store.db')
const env = { PARTNER_API_STORE: `sqlite:${file}` }
const run = (...args: string[]) => runProgram(args, { env })
const json = async (...args: string[]) => {
  const ended = await run(...args, '--json')
  return { ...ended, ...documentOf(ended) }
}

test('what only reads makes no store', async (t) => {
  const commands = [
    'partners list',
    'keys list',
    'modules list acme',
    'migrate --status',
    'content export plans',
  ]
  const answers = await Promise.all(commands.map((command) => json(...command.split(' '))))
  for (const { code, error } of answers) {
    t.equal(code, 3)
    t.equal(error.code, 'store_missing')
    t.match(error.detail, file)
    t.match(error.detail, 'partner-api migrate')
  }
  t.notOk(existsSync(file))
})

test('migrate', async (t) => {
  const [wrong, memory, both] = await Promise.all([
    run('migrate', '--key-prefix', 'A_'),
    run('--store', 'memory:', 'migrate'),
    run('migrate', '--status', '--key-prefix', 'acme'),
  ])
  t.same([wrong.code, memory.code, both.code], [2, 2, 2])
  t.notOk(existsSync(file))
  const made = await json('migrate', '--key-prefix', 'acme')
  t.equal(made.code, 0)
  t.match(made.data, { pending: [] })
  t.equal(made.data.current, made.data.latest)
  const status = await run('migrate', '--status')
  t.equal(status.code, 0)
  t.match(status.stdout, /pending: +nothing/)
})

test('partners', async (t) => {
  const none = await run('partners', 'list')
  t.same([none.code, none.stdout], [0, ''])
  t.match(none.stderr, 'partners create')

  const created = await json(
    ...['partners', 'create', 'acme', '--name', 'Acme Travel', '--module', 'profiles', 'banner'],
    ...['--module', 'profiles', '--limit', 'key=1200/30', '--limit', 'verify=0'],
  )
  t.equal(created.code, 0)
  t.match(created.data.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.match(created.data, {
    slug: 'acme',
    name: 'Acme Travel',
    state: 'active',
    modules: ['profiles', 'banner'],
    limits: [
      { policy: 'key', quota: 1200, window_seconds: 30 },
      { policy: 'verify', quota: 0, window_seconds: 60 },
    ],
  })

  const wrong = await Promise.all([
    json('partners', 'create', 'acme', '--name', 'Again'),
    json('partners', 'create', 'No Slug', '--name', 'N'),
    json('partners', 'create', 'other', '--name', ' '),
    json('partners', 'show', 'nobody'),
    json('partners', 'suspend', 'nobody'),
    json('partners', 'create', 'other'),
    json('partners', 'create', 'other', '--name', 'N', '--module', 'nothing'),
    json('partners', 'create', 'other', '--name', 'N', '--limit', 'authfail=1/1'),
    json('partners', 'create', 'other', '--name', 'N', '--limit', 'key=1'),
    json('partners', 'create', 'other', '--name', 'N', '--limit', 'key=1/0'),
    json('partners', 'create'),
    json('partners', 'list', 'extra'),
  ])
  t.same(wrong.map(({ code, error }) => [code, error.code]), [
    [1, 'partner_exists'],
    [1, 'invalid_slug'],
    [1, 'invalid_name'],
    [1, 'partner_not_found'],
    [1, 'partner_not_found'],
    ...Array(7).fill([2, 'usage']),
  ])

  t.equal((await run('partners', 'create', 'wide', '--name', 'ひろい \u202eName')).code, 0)
  const list = await run('partners', 'list')
  t.match(list.stdout, /^SLUG +NAME +STATE +MODULES\nacme +Acme Travel +active +profiles banner\nwide /)
  t.notMatch(list.stdout, '\u202e')
  t.same((await json('partners', 'list')).data.map(({ slug }: { slug: string }) => slug), ['acme', 'wide'])

  t.equal((await json('partners', 'suspend', 'acme')).data.state, 'suspended')
  t.match((await run('partners', 'show', 'acme')).stdout, /state: +suspended/)
  t.equal((await json('partners', 'resume', 'acme')).data.state, 'active')
})

test('modules', async (t) => {
  t.equal((await json('modules', 'list')).data.length, 8)
  t.same((await json('modules', 'activate', 'acme', 'pricing', 'countries')).data.modules, [
    'profiles',
    'banner',
    'countries',
    'pricing',
  ])
  t.same((await json('modules', 'deactivate', 'acme', 'pricing')).data.modules, [
    'profiles',
    'banner',
    'countries',
  ])
  const { data } = await json('modules', 'list', 'acme')
  t.same(data.find(({ module }: { module: string }) => module === 'pricing'), {
    module: 'pricing',
    active: false,
    scope: 'read:plans',
    feature: 'Pricing',
  })
  t.match((await run('modules', 'list', 'acme')).stdout, /countries +yes +read:countries/)
  const [unknown, none, nobody] = await Promise.all([
    run('modules', 'activate', 'acme', 'nothing'),
    run('modules', 'activate', 'acme'),
    run('modules', 'deactivate', 'nobody', 'banner'),
  ])
  t.same([unknown.code, none.code, nobody.code], [2, 2, 1])
})

test('keys', async (t) => {
  const quiet = await run('keys', 'issue', 'acme', '--name', 'first', '--quiet')
  t.same([quiet.code, quiet.stderr], [0, ''])
  const first = quiet.stdout.replace(/\n$/, '')
  t.match(first, /^acme_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/)
  t.ok(hasValidChecksum(first))
  const id = first.split('_')[2]!

  const issued = await json(
    ...['keys', 'issue', 'acme', '--name', 'second', '--test', '--expires', '90d'],
    ...['--scope', 'read:profiles', '--allow', '192.0.2.0/24', '2001:db8::/32', '--limit', 'key=5/10'],
  )
  t.equal(issued.code, 0)
  t.match(issued.data.key, /^acme_test_/)
  t.match(issued.data, {
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
  })
  t.equal(Date.parse(issued.data.expires_at) - Date.parse(issued.data.created_at), 90 * 86_400_000)

  const human = await run('keys', 'issue', 'acme', '--name', 'third')
  t.equal(human.stdout.split(/acme_live_\w+/).length, 2, 'the key is printed once')
  t.match(human.stdout, /scopes: +read:profiles read:banner read:countries\n/)
  t.match(human.stderr, 'shown only once')
  t.notMatch(human.stderr, /acme_live_/)

  const wrong = await Promise.all([
    json('keys', 'issue', 'nobody', '--name', 'n'),
    json('keys', 'issue', 'acme', '--name', 'n', '--scope', 'read:plans'),
    json('keys', 'issue', 'acme', '--name', 'n', '--allow', '192.0.2.0/33'),
    json('keys', 'show', 'nothing'),
    json('keys', 'list', 'nobody'),
    json('keys', 'issue', 'acme'),
    json('keys', 'issue', 'acme', '--name', 'n', '--scope', 'read:everything'),
    json('keys', 'issue', 'acme', '--name', 'n', '--expires', '3 weeks'),
    json('keys', 'issue', 'acme', '--name', 'n', '--expires', '0'),
    json('keys', 'issue', 'acme', '--name', 'n', '--expires', '2026-02-30'),
    json('keys', 'revoke'),
  ])
  t.same(wrong.map(({ code, error }) => [code, error.code]), [
    [1, 'partner_not_found'],
    [1, 'module_inactive'],
    [1, 'invalid_address_range'],
    [1, 'key_not_found'],
    [1, 'partner_not_found'],
    ...Array(6).fill([2, 'usage']),
  ])
  t.match(wrong[1]!.error.detail, 'partner-api modules activate acme pricing')

  const list = await json('keys', 'list', 'acme')
  t.same(list.data.map(({ name }: { name: string }) => name), ['first', 'second', 'third'])
  t.match(
    (await run('keys', 'list')).stdout,
    new RegExp(`${id} +acme +first +live +…${first.slice(-4)} +active`),
  )
  const { id: third } = list.data[2]
  await run('keys', 'rotate', third, '--overlap', '7d')
  const { retires_at } = (await json('keys', 'show', third)).data.rotation
  const minute = (instant: string) => `${instant.slice(0, 16).replace('T', ' ')} UTC`
  const rows = (await run('keys', 'list')).stdout.split('\n')
  t.match(rows.find((row) => row.startsWith(third)), new RegExp(`retiring +3 +${minute(retires_at)} +never`))
  t.match(
    rows.find((row) => row.startsWith(issued.data.id)),
    new RegExp(`active +1 +${minute(issued.data.expires_at)} +never`),
  )
  t.equal((await json('keys', 'disable', id)).data.state, 'disabled')
  t.equal((await json('keys', 'enable', id)).data.state, 'active')
  t.equal((await json('keys', 'revoke', id)).data.state, 'revoked')
  t.match((await run('keys', 'show', id)).stdout, /state: +revoked/)
  t.match(await json('keys', 'enable', id), { code: 1, error: { code: 'key_revoked' } })

  const kept = readFileSync(file).toString('latin1') +
    readFileSync(`${file}-wal`, { flag: 'a+' }).toString('latin1')
  for (const key of [first, issued.data.key]) t.notOk(kept.includes(key.slice(-38)), 'no secret is kept')
})

test('scopes', async (t) => {
  t.same((await json('scopes', 'list')).data[5], {
    scope: 'read:plans',
    module: 'pricing',
    feature: 'Pricing',
  })
  const { id } = (await json('keys', 'issue', 'acme', '--name', 's', '--scope', 'read:profiles')).data
  t.same((await json('scopes', 'grant', id, 'read:banner', 'read:countries')).data.scopes, [
    'read:profiles',
    'read:banner',
    'read:countries',
  ])
  t.same((await json('scopes', 'remove', id, 'read:countries')).data.scopes, ['read:profiles', 'read:banner'])
  await run('modules', 'deactivate', 'acme', 'banner')
  t.same((await json('scopes', 'show', id)).data, [
    { scope: 'read:profiles', in_force: true, module: 'profiles' },
    { scope: 'read:banner', in_force: false, module: 'banner' },
  ])
  t.match((await run('scopes', 'show', id)).stdout, /read:banner +no: module inactive/)
  const wrong = await Promise.all([
    run('scopes', 'grant', id, 'read:plans'),
    run('scopes', 'show', 'nothing'),
    run('scopes', 'grant', id, 'nothing'),
    run('scopes', 'remove', id),
  ])
  t.same(wrong.map(({ code }) => code), [1, 1, 2, 2])
})

test('the end', (t) => {
  folder.remove()
  t.end()
})

test('what stands in the way of a SQLite file is said', async (t) => {
  const folder = temporaryFolder()
  t.teardown(() => folder.remove())
  // Root may do everything.
  const isRoot = process.getuid?.() === 0
  const asNobody = isRoot
    ? ['--import', 'data:text/javascript,process.setgid(65534);process.setuid(65534)']
    : []
  const run = (store: string, ...args: string[]) =>
    runProcess(['--store', `sqlite:${store}`, ...args], { nodeArguments: asNobody })
  const file = join(folder.path, 'partners.db')
  t.match(await runProgram(['--store', `sqlite:${file}`, 'migrate']), { code: 0 })
  // With these there, SQLite reads without writing.
  for (const end of ['-shm', '-wal']) rmSync(file + end, { force: true })
  chmodSync(folder.path, 0o555)
  chmodSync(file, 0o444)
  const written = await run(file, 'partners', 'list')
  const beside = await run(join(folder.path, 'new.db'), 'migrate')
  chmodSync(file, 0o000)
  const hidden = await run(file, 'serve', '--port', '0')
  chmodSync(folder.path, 0o755)
  const lost = join(folder.path, 'nowhere')
  const answers: [Ended, string][] = [
    [written, `${file} cannot be used: this account may read but not write it`],
    [
      beside,
      `cannot be used: this account may not write in ${folder.path}, where SQLite creates further files`,
    ],
    [hidden, `${file} cannot be used: this account may not read it`],
    [await run(folder.path, 'partners', 'list'), `${folder.path} cannot be used: it is a folder`],
    [await run(join(lost, 'partners.db'), 'migrate'), `cannot be used: there is no folder ${lost}`],
    [
      await run('unused', 'store', 'copy', '--from', `sqlite:${folder.path}`, '--to', 'sqlite:unused'),
      'it is a folder',
    ],
  ]
  for (const [{ code, stdout, stderr }, sentence] of answers) {
    t.same([code, stdout], [3, ''])
    t.match(stderr, new RegExp(`^error: The store .*\\n$`))
    t.ok(stderr.endsWith(`${sentence}.\n`), stderr)
  }
})

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration, type NewKey } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { hasValidChecksum } from '../../core/keys/format.ts'
import { gather } from '../support/gather.ts'
import {
  cleanEnv,
  documentOf,
  ending,
  MAIN,
  runProcess,
  runProgram,
  temporaryFolder,
} from '../support/cli-program.ts'

const folder = temporaryFolder()
const file = join(folder.path, 'store.db')
const env = { PARTNER_API_STORE: `sqlite:${file}` }
const store = await openSqliteStore(file)
const partners = createPartnerAdministration(store, { actor: 'test' })
const keys = createKeyAdministration(store, { actor: 'test' })
for (const slug of ['acme', 'brief', 'gone']) {
  await partners.create({ slug, name: slug, modules: ['profiles'] })
}
const issue = async (more: Partial<NewKey> = {}) =>
  (await keys.issue({
    partner: 'acme',
    name: 'Plugin',
    environment: 'live',
    ...more,
  })).key

const run = (...args: string[]) => runProgram(args, { env })
const json = async (...args: string[]) => {
  const ended = await run(...args, '--json')
  return { ...ended, ...documentOf(ended) }
}
const codes = (answers: readonly Awaited<ReturnType<typeof json>>[]) =>
  answers.map(({ code, error }) => [code, error.code])

test('partners update', async (t) => {
  const updated = await json(
    ...[
      'partners',
      'update',
      'acme',
      '--name',
      'Acme Journeys',
      '--limit',
      'key=1200/30',
    ],
    ...['--limit', 'verify=0'],
  )
  t.equal(updated.code, 0)
  t.match(updated.data, {
    name: 'Acme Journeys',
    limits: [{ policy: 'key', quota: 1200, window_seconds: 30 }, {
      policy: 'verify',
      quota: 0,
    }],
  })
  const cleared = await run(
    'partners',
    'update',
    'acme',
    '--clear-limit',
    'key',
    'signup',
  )
  t.match(cleared, {
    code: 0,
    stdout: /name: +Acme Journeys\n(.*\n)*limits: +verify=0\n/,
  })
  t.same(
    codes(
      await Promise.all([
        json('partners', 'update', 'acme'),
        json(
          'partners',
          'update',
          'acme',
          '--limit',
          'key=1/1',
          '--clear-limit',
          'key',
        ),
        json('partners', 'update', 'acme', '--clear-limit', 'authfail'),
        json('partners', 'update', 'acme', '--limit', 'key=many'),
        json('partners', 'update', 'acme', '--name', ' '),
        json('partners', 'update', 'nobody', '--name', 'N'),
      ]),
    ),
    [...Array(4).fill([2, 'usage']), [1, 'invalid_name'], [
      1,
      'partner_not_found',
    ]],
  )
})

test('partners remove', async (t) => {
  const { id } = await issue({ partner: 'gone' })
  await issue({ partner: 'gone', expiresAt: Date.now() + 1 })
  const unasked = await run('partners', 'remove', 'gone')
  t.match(unasked, { code: 2, stdout: '', stderr: '--yes' })
  t.match(unasked.stderr, 'revokes 1 key')
  t.equal((await partners.show('gone')).state, 'active')
  t.match(await json('partners', 'remove', 'gone', '--yes'), {
    code: 0,
    data: { slug: 'gone', state: 'removed' },
  })
  t.equal((await keys.show(id)).state, 'revoked')
  const again = await run('partners', 'remove', 'gone', '--yes')
  t.match(again, { code: 0, stderr: 'revoked no key' })
  t.same(
    codes(
      await Promise.all([
        json('partners', 'remove', 'nobody', '--yes'),
        json('partners', 'update', 'gone', '--name', 'N'),
        json('partners', 'create', 'gone', '--name', 'N'),
      ]),
    ),
    [[1, 'partner_not_found'], [1, 'partner_removed'], [1, 'partner_exists']],
  )
})

test('partners remove asks on a terminal', {
  skip: spawnSync('script', ['--version']).status === 0
    ? false
    : 'there is no script(1) to make a terminal with',
}, async (t) => {
  const answer = async (typed: string) => {
    const command = `'${process.execPath}' '${MAIN}' partners remove brief; echo "exit $?"`
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: cleanEnv(env),
      stdio: 'pipe',
    })
    const ended = ending(child)
    child.stdout.on('data', (text: string) => {
      if (text.includes('to confirm: ')) child.stdin.write(typed)
    })
    return (await ended).stdout
  }
  for (const typed of ['yes\r', '\r', '\u0004']) {
    const shown = await answer(typed)
    t.match(shown, 'This removes partner brief (brief) and revokes no key.')
    t.match(shown, 'Nothing was changed')
    t.match(shown, 'exit 1')
  }
  t.match(await answer('\u0003'), /exit 1/)
  t.equal((await partners.show('brief')).state, 'active')
  t.match(await answer('brief\r'), 'exit 0')
  t.equal((await partners.show('brief')).state, 'removed')
})

test('keys rotate', async (t) => {
  const old = await issue({
    environment: 'test',
    allow: ['192.0.2.1'],
    expiresAt: Date.now() + 86_400_000,
  })
  const rotated = await json('keys', 'rotate', old.id, '--overlap', '2h')
  t.equal(rotated.code, 0)
  t.match(rotated.data.key, /^spk_test_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/)
  t.ok(hasValidChecksum(rotated.data.key))
  t.match(rotated.data, {
    id: rotated.data.key.split('_')[2],
    partner: 'acme',
    environment: 'test',
    state: 'active',
    scopes: ['read:profiles'],
    allow: ['192.0.2.1'],
    rotation: null,
    expires_at: new Date(old.expiresAt!).toISOString(),
  })
  const [shown, quiet] = await Promise.all([
    json('keys', 'show', old.id),
    run(
      'keys',
      'rotate',
      rotated.data.id,
      '--overlap',
      '0',
      '--expires',
      '90d',
      '--quiet',
    ),
  ])
  t.match(shown.data, {
    state: 'retiring',
    rotation: { successor_id: rotated.data.id },
  })
  t.equal(
    Date.parse(shown.data.rotation.retires_at) -
      Date.parse(rotated.data.created_at),
    7_200_000,
  )
  t.match(quiet, { code: 0, stderr: '', stdout: /^spk_test_\w{51}\n$/ })
  t.equal((await json('keys', 'show', rotated.data.id)).data.state, 'expired')
  const last = quiet.stdout.split('_')[2]!
  const human = await run('keys', 'rotate', last)
  t.equal(
    human.stdout.split(/spk_test_\w+/).length,
    2,
    'the key is printed once',
  )
  t.match(human.stderr, `Key ${last} works until`)
  t.notMatch(human.stderr, /spk_test_/)

  const disabled = await issue()
  await keys.disable(disabled.id)
  t.same(
    codes(
      await Promise.all([
        json('keys', 'rotate', last),
        json('keys', 'rotate', rotated.data.id),
        json('keys', 'rotate', disabled.id),
        json('keys', 'rotate', 'nothing'),
        json('keys', 'rotate', old.id, '--overlap', 'long'),
        json('keys', 'rotate', old.id, '--expires', '0'),
        json('keys', 'rotate'),
      ]),
    ),
    [
      [1, 'key_rotated'],
      [1, 'key_expired'],
      [1, 'key_disabled'],
      [1, 'key_not_found'],
      ...Array(3).fill([2, 'usage']),
    ],
  )
})

test('keys update', async (t) => {
  const { id } = await issue({
    allow: ['192.0.2.1'],
    expiresAt: Date.now() + 86_400_000,
  })
  const first = await json(
    ...[
      'keys',
      'update',
      id,
      '--name',
      'Shop',
      '--allow',
      '192.0.2.0/24',
      '2001:db8::/32',
    ],
    ...['--expires', '2099-12-31'],
  )
  t.match(first, {
    code: 0,
    data: {
      name: 'Shop',
      allow: ['192.0.2.0/24', '2001:db8::/32'],
      expires_at: '2099-12-31T23:59:59.999Z',
      scopes: ['read:profiles'],
    },
  })
  const instant = await json(
    'keys',
    'update',
    id,
    '--clear-allow',
    '--expires',
    '2099-12-31T12:00:00+02:00',
  )
  t.match(instant.data, {
    name: 'Shop',
    allow: [],
    expires_at: '2099-12-31T10:00:00.000Z',
  })
  t.match((await json('keys', 'update', id, '--never')).data, {
    name: 'Shop',
    expires_at: null,
  })
  const before = Date.now()
  const { expires_at } = (await json('keys', 'update', id, '--expires', '2h')).data
  t.ok(
    Date.parse(expires_at) >= before + 7_200_000 &&
      Date.parse(expires_at) <= Date.now() + 7_200_000,
  )
  t.same(
    codes(
      await Promise.all([
        json('keys', 'update', id),
        json('keys', 'update', id, '--never', '--expires', '1h'),
        json('keys', 'update', id, '--clear-allow', '--allow', '192.0.2.1'),
        json('keys', 'update', id, '--expires', 'tomorrow'),
        json('keys', 'update', id, '--expires', '2020-01-01'),
        json('keys', 'update', 'nothing', '--name', 'n'),
      ]),
    ),
    [...Array(4).fill([2, 'usage']), [1, 'invalid_expiry'], [
      1,
      'key_not_found',
    ]],
  )
})

test('a limit of no requests is refused with the words that turn a limit off', async (t) => {
  const { id } = await issue()
  for (
    const command of [
      ['partners', 'create', 'none', '--name', 'None'],
      ['partners', 'update', 'acme'],
      ['keys', 'issue', 'acme', '--name', 'None'],
      ['keys', 'limit', id],
      ['serve', '--port', '0'],
    ]
  ) {
    const ended = await json(...command, '--limit', 'key=0/60')
    t.match(
      ended,
      { code: 2, error: { detail: /key=0 turns the limit off/ } },
      command.join(' '),
    )
  }
  t.match((await json('keys', 'limit', id, '--limit', 'key=0')).data.limits, [{
    policy: 'key',
    quota: 0,
  }])
})

test('a key goes to a new file that only its owner may read', async (t) => {
  const path = (name: string) => join(folder.path, name)
  const issued = await json(
    'keys',
    'issue',
    'acme',
    '--name',
    'a',
    '--out',
    path('a.key'),
  )
  const text = readFileSync(path('a.key'), 'utf8')
  t.match(text, /^spk_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}\n$/)
  t.equal(statSync(path('a.key')).mode & 0o777, 0o600)
  t.match(issued, {
    code: 0,
    data: { id: text.split('_')[2], out: path('a.key'), name: 'a' },
  })
  t.notOk('key' in issued.data)
  const rotated = await run(
    'keys',
    'rotate',
    issued.data.id,
    '--out',
    path('b.key'),
  )
  const next = readFileSync(path('b.key'), 'utf8').trim()
  t.match(rotated, {
    code: 0,
    stdout: `out:`,
    stderr: `The only copy of the key is in ${path('b.key')}`,
  })
  for (const { stdout, stderr } of [issued, rotated]) {
    t.notMatch(stdout + stderr, /_[0-9A-Za-z]{38}/)
  }
  const quiet = await run(
    'keys',
    'issue',
    'acme',
    '--name',
    'c',
    '--out',
    path('c.key'),
    '--quiet',
  )
  t.match(quiet, { code: 0, stdout: '', stderr: '' })

  // Nothing is overwritten, followed or issued where the file cannot be made.
  writeFileSync(path('other'), 'mine')
  symlinkSync(path('nowhere'), path('link'))
  const count = (await gather(keys.list())).length
  for (const name of ['other', 'link', 'no/folder.key']) {
    const refused = await Promise.all([
      json('keys', 'issue', 'acme', '--name', 'd', '--out', path(name)),
      json('keys', 'rotate', next.split('_')[2]!, '--out', path(name)),
    ])
    t.same(
      codes(refused),
      [[1, 'file_not_created'], [1, 'file_not_created']],
      name,
    )
  }
  for (const out of ['', '-']) {
    const refused = await json(
      'keys',
      'issue',
      'acme',
      '--name',
      'd',
      '--out',
      out,
    )
    t.match(refused, { code: 2, error: { detail: /path of a new file/ } })
  }
  t.equal(readFileSync(path('other'), 'utf8'), 'mine')
  t.notOk(existsSync(path('nowhere')))
  t.match(
    await json(
      'keys',
      'issue',
      'nobody',
      '--name',
      'd',
      '--out',
      path('d.key'),
    ),
    { code: 1 },
  )
  t.notOk(
    existsSync(path('d.key')),
    'a command that is refused leaves no file',
  )
  t.equal((await gather(keys.list())).length, count)
})

test('a key whose file cannot be written is named', {
  skip: existsSync('/dev/full') ? false : 'there is no device that is full',
}, async (t) => {
  // A file on a disk that fills up between its creation and its writing.
  const full = "import fs from 'node:fs/promises';import { syncBuiltinESMExports } from 'node:module';" +
    "const { open } = fs; fs.open = () => open('/dev/full', 'w'); syncBuiltinESMExports()"
  const ended = await runProcess([
    'keys',
    'issue',
    'acme',
    '--name',
    'e',
    '--out',
    join(folder.path, 'e.key'),
  ], {
    env,
    nodeArguments: [
      '--import',
      `data:text/javascript,${encodeURIComponent(full)}`,
    ],
  })
  const { id } = (await gather(keys.list('acme'))).find(({ name }) => name === 'e')!
  t.match(ended, { code: 1, stdout: '', stderr: `Key ${id} was issued` })
  t.match(ended.stderr, `partner-api keys revoke ${id}`)
})

test('keys limit', async (t) => {
  const { id } = await issue()
  const limited = await json(
    'keys',
    'limit',
    id,
    '--limit',
    'key=5/10',
    '--limit',
    'signup=0',
  )
  t.equal(limited.code, 0)
  t.match(limited.data.limits, [
    { policy: 'key', quota: 5, window_seconds: 10 },
    {
      policy: 'signup',
      quota: 0,
    },
  ])
  const changed = await run(
    'keys',
    'limit',
    id,
    '--clear-limit',
    'signup',
    '--limit',
    'verify=9/60',
  )
  t.match(changed, { code: 0, stdout: /limits: +key=5\/10 verify=9\/60\n/ })
  t.same(
    codes(
      await Promise.all([
        json('keys', 'limit', id),
        json('keys', 'limit', id, '--limit', 'authfail=1/1'),
        json('keys', 'limit', 'nothing', '--clear-limit', 'key'),
      ]),
    ),
    [[2, 'usage'], [2, 'usage'], [1, 'key_not_found']],
  )
})

test('the trail names who did it', async (t) => {
  await run(
    'partners',
    'update',
    'acme',
    '--name',
    'Acme',
    '--actor',
    'Ada Lovelace',
  )
  const { sequence } = await store.auditHead()
  t.match(await store.listAudit(sequence - 1, 1), [{
    actor: 'Ada Lovelace',
    type: 'partner.updated',
    partner: 'acme',
  }])
})

test('the end', async () => {
  await store.close()
  folder.remove()
})

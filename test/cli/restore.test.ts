/** `store restore`: the access of keys and partners is that of the backup, unless the replaced store took some away. */
import { existsSync, lstatSync, mkdirSync, symlinkSync } from 'node:fs'
import { test } from 'tap'
import {
  clockAhead,
  documentOf,
  newFile,
  programOn,
  runProcess,
  temporaryFolder,
} from '../support/cli-program.ts'
import { restoreAfterADay, restoreOfUse, sqlitePlace } from '../support/restores.ts'

test('a store that is restored after a day of use', async (t) => {
  await restoreOfUse(t, sqlitePlace(), 4)
})

test('a store that is restored after a day of changes', async (t) => {
  await restoreAfterADay(t, sqlitePlace())
})

test('--as-backed-up brings back what a mistaken revocation ended, and is audited', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
  for (const name of ['a', 'b', 'c']) await run('keys', 'issue', 'acme', '--name', name)
  await place.backUp()
  await run('keys', 'revoke', '--partner', 'acme', '--yes')
  const restore = [...place.restore, '--as-backed-up']
  t.match(await run(...restore), { code: 2, stderr: /accepted again\. Pass --yes to skip this prompt/ })
  const { data, code, stderr } = await json(...restore, '--yes')
  t.match({ code, data }, {
    code: 0,
    data: { mode: 'as_backed_up', narrowed: { keys: 0 }, since: { entries: 3 } },
  })
  t.match(stderr, /^warning: Keys and partners are as in the backup: /m)
  t.match((await json('keys', 'list')).data, Array(3).fill({ state: 'active' }))
  const { data: entries } = await json('audit', 'list')
  t.match(entries.at(-1), {
    type: 'store.restored',
    before: { sequence: 7 },
    after: { mode: 'as_backed_up', sequence: 4 },
  })
})

test('a store without an entry of the backup is not replaced without --force', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme')
  await place.backUp()
  const other = `sqlite:${newFile()}`
  await programOn(other).run('partners', 'create', 'other', '--name', 'Other')
  const restore = [
    '--store',
    other,
    'store',
    'restore',
    `${place.url.replace('sqlite:', '')}.backup`,
    '--replace',
  ]
  t.match(await json(...restore), {
    code: 1,
    error: { code: 'replaced_unrelated', detail: /no entry in common/ },
  })
  t.match((await programOn(other).json('partners', 'list')).data, [{ slug: 'other' }])
  t.match(await json(...restore, '--force'), { code: 0, data: { mode: 'unknown', changes: [] } })
  t.match((await programOn(other).json('partners', 'list')).data, [{ slug: 'acme' }])
})

test('a clock that is ahead during a restore leaves no link open', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
  const claim = ['--claim', '12h', '--public-url', 'http://localhost']
  await run('keys', 'issue', 'acme', '--name', 'K', ...claim)
  await place.backUp()
  const ended = await runProcess([...place.restore, '--json'], clockAhead(86_400_000))
  t.match(documentOf(ended), { data: { revoked_claims: 1 } })
  t.match((await json('claims', 'list')).data, [{ state: 'revoked' }])
})

test('a restore and a backup write where a link leads, also to a file that is not there', async (t) => {
  const place = sqlitePlace()
  const { run } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme')
  await place.backUp()
  const folder = temporaryFolder()
  const backup = `${place.url.replace('sqlite:', '')}.backup`
  const links = { store: 'data/store.db', backup: 'data/backup.db', lost: 'none/store.db', circle: 'circle' }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, `${folder}/${name}`)
  mkdirSync(`${folder}/data`)
  t.match(await run('--store', `sqlite:${folder}/store`, 'store', 'restore', backup), { code: 0 })
  t.match(await run('store', 'backup', `${folder}/backup`), { code: 0 })
  for (const name of ['store', 'backup'] as const) {
    t.ok(lstatSync(`${folder}/${name}`).isSymbolicLink(), name)
    t.match(await programOn(`sqlite:${folder}/${links[name]}`).json('partners', 'list'), {
      data: [{ slug: 'acme' }],
    })
  }
  for (const name of ['lost', 'circle']) {
    t.match(await programOn(`sqlite:${folder}/${name}`).json('store', 'restore', backup), {
      code: 1,
      error: { code: 'file_not_created', detail: /^Nothing was changed: / },
    })
  }
  t.notOk(existsSync(`${folder}/none`))
})

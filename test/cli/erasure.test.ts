/** `signups delete`, what it leaves in files, and what a restore says of deletions. */
import { existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import type { Clock } from '../../core/lib/clock.ts'
import type { Signup } from '../../core/ports/signups.ts'
import { deleteOldSignups } from '../../core/signups/retention.ts'
import { createKeys, DAY, reservation, signup, stamp, T0 } from '../contract/store/samples.ts'
import { ending, newFile, preload, programOn, runProgram, startProgram } from '../support/cli-program.ts'

/** A store whose webhook has a delivery of each signup; `people` are e-mail addresses, a day apart. */
async function filled(people: readonly (string | Partial<Signup>)[]) {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createKeys(store, 'acme', 'globex')
  const webhook = `whk_${'1'.padStart(20, '0')}`
  await store.webhooks.changeWebhook(webhook, 'webhook.created', stamp, () => ({
    id: webhook,
    url: 'https://hooks.example/',
    events: ['signup.created'],
    partner: undefined,
    state: 'active',
    createdAt: T0,
    secrets: [{ sealed: 'v1', expiresAt: undefined }],
    failingSince: undefined,
  }))
  const ids: string[] = []
  for (const [index, person] of people.entries()) {
    const more = typeof person === 'string' ? { email: person } : person
    const createdAt = T0 + index * DAY
    const sent = signup(`${index}`, { createdAt, keyId: `${more.partner ?? 'acme'}-live`, ...more })
    await store.createSignup(
      sent,
      reservation({ key: `key of ${sent.email}`, expiresAt: sent.createdAt + DAY }),
    )
    ids.push(sent.id)
  }
  await store.close()
  return { file, ids, webhook, ...programOn(`sqlite:${file}`) }
}

/** Whether any file of a store has a text. */
const holds = (file: string, text: string) =>
  ['', '-wal', '-shm', '-servers', '-servers-wal'].some((end) =>
    existsSync(file + end) && readFileSync(file + end).includes(text)
  )

const remaining = async ({ json }: Pick<ReturnType<typeof programOn>, 'json'>) =>
  (await json('signups', 'list')).data.map(({ id }: { readonly id: string }) => Number(id.slice(4)))

test('signups are deleted by id, e-mail and date, and leave no text in the files', async (t) => {
  const people = [
    'ada@mail.example',
    'Grace@Mail.Example',
    'grace@mail.example',
    'eve@mail.example',
    'joan@mail.example',
  ]
  const store = await filled([...people, { email: 'mary@mail.example', partner: 'globex' }])
  const { file, ids, run, json, refuses } = store
  // Holds the files open, as a server does.
  const server = await openSqliteStore(file)
  t.teardown(() => server.close())
  t.equal(holds(file, 'Grace@Mail.Example'), true)
  await refuses(t, {
    'signups delete': '2 usage',
    [`signups delete ${ids[0]} --before 2026-01-01`]: '2 usage',
    'signups delete --email grace --yes': '2 usage',
    'signups delete --before soon --yes': '2 usage',
    'signups delete --before 2027-01-01': '2 usage',
    'signups delete --before 2027-01-01 --partner missing --yes': '1 partner_not_found',
    [`signups delete ${ids[0]} --partner globex --yes`]: '1 signup_not_found',
    'signups delete sgn_unknown --yes': '1 signup_not_found',
  })
  const dryRun = await json('signups', 'delete', '--before', '2027-01-01', '--dry-run')
  const partners = [{ partner: 'acme', signups: 5 }, { partner: 'globex', signups: 1 }]
  t.same(dryRun.data, { signups: 6, partners, dry_run: true })
  t.same(await remaining(store), [5, 4, 3, 2, 1, 0])

  const input = runProgram(['signups', 'delete', '--email', '-', '--yes', '--json'], {
    env: { PARTNER_API_STORE: `sqlite:${file}` },
    input: 'GRACE@mail.example\n',
  })
  const counts = { signups: 2, partners: [{ partner: 'acme', signups: 2 }], dry_run: false }
  t.same(JSON.parse((await input).stdout).data, counts)
  for (const text of ['Grace@Mail.Example', 'grace@mail.example']) t.equal(holds(file, text), false, text)
  t.equal(holds(file, 'eve@mail.example'), true)
  const some = await json('signups', 'delete', ids[0]!, 'sgn_unknown', '--yes')
  const detail = 'There is no signup "sgn_unknown". Deleted 1 signup.'
  t.match(some, { code: 1, data: { signups: 1 }, error: { code: 'signup_not_found', detail } })
  // The fourth of January, at midnight, is the first instant that is kept.
  t.match((await json('signups', 'delete', '--before', '2026-01-05', '--yes')).data, { signups: 1 })
  t.same(await remaining(store), [5, 4])
  t.match((await json('signups', 'delete', '--before', '2030-01-01', '--partner', 'acme', '--yes')).data, {
    signups: 1,
  })
  t.match(await run('signups', 'delete', '--email', 'joan@mail.example', '--yes'), {
    code: 0,
    stdout: /no such/,
  })
  t.same(await remaining(store), [5])
  for (const person of people) t.equal(holds(file, person), false, person)

  const { stdout } = await run('audit', 'list')
  t.equal(stdout.split('\n').filter((line) => /signups\.deleted +acme .*\d deleted$/.test(line)).length, 4)
  t.notMatch((await run('audit', 'list', '--json')).stdout, /mail\.example/)
  t.match(await run('audit', 'verify'), { code: 0 })
})

test('signups that are kept elsewhere are named', async (t) => {
  const { run } = await filled(['ada@mail.example', { email: '', name: '' }])
  const ended = await run('signups', 'delete', '--email', 'eve@mail.example', '--dry-run')
  t.match(ended, { code: 0, stdout: /no such/, stderr: /1 signup .*elsewhere/ })
})

test('a restore says that deleted signups are back', async (t) => {
  const store = await filled(['a@mail.example', 'b@mail.example'])
  const { file, ids, run } = store
  await run('store', 'backup', `${file}.backup`)
  await run('signups', 'delete', ids[0]!, '--yes')
  const { stdout, stderr } = await run('store', 'restore', `${file}.backup`, '--replace')
  t.match(stdout, /^\d+ .* signups\.deleted /m)
  t.match(stderr, /^warning: The backup may have signups that were deleted since: delete them again with/m)
  t.equal((await remaining(store)).length, 2)
})

test('a command that is killed has deleted whole batches, and can be repeated', async (t) => {
  const people = Array.from(
    { length: 1_200 },
    (_, index) => ({ email: `p${index}@mail.example`, createdAt: T0 + index }),
  )
  const store = await filled(people)
  const child = startProgram(['signups', 'delete', '--before', '2027-01-01', '--yes'], {
    env: { PARTNER_API_STORE: `sqlite:${store.file}` },
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  const watched = await openSqliteStore(store.file)
  while (await watched.findSignup(store.ids.at(-1)!) !== undefined) await new Promise(setImmediate)
  child.kill('SIGKILL')
  await ended
  const counted = (await watched.listAudit(0, 100)).filter(({ type }) => type === 'signups.deleted')
    .reduce((sum, { before }) => sum + JSON.parse(before!).signups, 0)
  t.equal(counted + (await remaining(store)).length, 1_200)
  await watched.close()
  t.match(await store.json('signups', 'delete', '--before', '2027-01-01', '--yes'), { code: 0 })
  t.same(await remaining(store), [])
  t.equal(holds(store.file, '@mail.example'), false)
  t.match(await store.run('audit', 'verify'), { code: 0 })
})

test('a server deletes the signups of days that are over, once its clock has settled', async (t) => {
  const { file, ids } = await filled(Array.from({ length: 40 }, (_, index) => `p${index}@mail.example`))
  const stores = [await openSqliteStore(file), await openSqliteStore(file)]
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  const now = T0 + 39.5 * DAY
  const closing = new AbortController()
  const fail = (error: unknown) => t.fail(String(error))
  const start = (clock: Partial<Clock> = {}, { signal } = closing) =>
    Promise.all(
      stores.map((store) =>
        deleteOldSignups(
          store,
          { keepSignupsDays: 10 },
          { now: () => now, deletionTime: () => now, ...clock },
          fail,
          signal,
        )
      ),
    )
  const unsettled = new AbortController()
  const waiting = start({ deletionTime: () => void queueMicrotask(() => unsettled.abort()) }, unsettled)
  await waiting
  t.equal((await stores[0]!.listSignups(undefined, undefined, 99)).length, 40)
  const servers = start()
  while (await stores[0]!.findSignup(ids[0]!) !== undefined) await new Promise(setImmediate)
  closing.abort()
  await servers
  const left = (await stores[0]!.listSignups(undefined, undefined, 99)).map(({ id }) => id)
  t.same(left, ids.slice(29).reverse())
  for (let index = 0; index < 29; index++) t.equal(holds(file, `p${index}@mail.example`), false)
  const actors = (await stores[0]!.listAudit(0, 100)).filter(({ type }) => type === 'signups.deleted')
  t.same(new Set(actors.map(({ actor }) => actor)), new Set(['partner-api']))
})

/** Runs one check of a server whose store has so many old signups. @returns The sizes of batches, and its errors. */
async function checkOnce(count: number, parts: { deleteSignups?(): number | void; eraseRemains?(): void }) {
  const [sizes, failures]: [number[], unknown[]] = [[], []]
  const closing = new AbortController()
  const store = {
    listSignups(_: unknown, __: unknown, limit: number) {
      if (!Number.isInteger(limit)) throw new RangeError(`${limit} rows`)
      return Array.from({ length: Math.min(limit, count) }, (_, index) => signup(`${index}`))
    },
    deleteSignups(ids: readonly string[]) {
      sizes.push(ids.length)
      const deleted = parts.deleteSignups?.() ?? ids.length
      count -= deleted
      return deleted
    },
    eraseRemains() {
      closing.abort()
      parts.eraseRemains?.()
    },
  }
  const onFailure = (error: unknown) => {
    failures.push(error)
    closing.abort()
  }
  await deleteOldSignups(
    store,
    { keepSignupsDays: 1 },
    { now: () => T0, deletionTime: () => T0 },
    onFailure,
    closing.signal,
  )
  return { sizes, failures, count }
}

test('a server deletes all that is due, in batches that a slow store does not shrink to nothing', async (t) => {
  const slow = await checkOnce(100, {
    deleteSignups() {
      for (const end = performance.now() + 10; performance.now() < end;);
    },
  })
  t.same(slow, { sizes: [16, 16, 16, 16, 16, 16, 4], failures: [], count: 0 })
  let batches = 0
  const slower = await checkOnce(3_000, {
    deleteSignups() {
      for (const end = performance.now() + (batches++ < 6 ? 0 : 10); performance.now() < end;);
    },
  })
  t.match(slower, { failures: { length: 0 }, count: 0 }, 'a store takes whole numbers of rows')
  const full = await checkOnce(100, {
    deleteSignups() {
      throw new Error('full')
    },
  })
  t.match(full, { failures: [{ message: 'full' }], count: 100 })
  // While a backup reads the file.
  const read = await checkOnce(100, {
    eraseRemains() {
      throw new Error('locked')
    },
  })
  t.match(read, { failures: [{ message: 'locked' }], count: 0 })
  // A server that was killed may have left text.
  let erasures = 0
  t.match(await checkOnce(0, { eraseRemains: () => void erasures++ }), { sizes: [], failures: [] })
  t.equal(erasures, 1)
  t.same((await checkOnce(100, { deleteSignups: () => 0 })).sizes, [16], 'another server is at it')
})

test('text that a store has deleted without overwriting it is erased, too', async (t) => {
  const { file, run } = await filled(['ada@mail.example'])
  const database = new DatabaseSync(file)
  database.exec(
    'PRAGMA secure_delete = OFF; DELETE FROM webhook_delivery; DELETE FROM idempotency; DELETE FROM signup',
  )
  database.close()
  t.equal(holds(file, 'ada@mail.example'), true)
  t.match(await run('signups', 'delete', '--email', 'ada@mail.example', '--yes'), { code: 0 })
  t.equal(holds(file, 'ada@mail.example'), false)
})

test('serve --keep-signups deletes old signups, and ends when it is told to', async (t) => {
  const people = [{ email: 'old@mail.example' }, { email: 'new@mail.example', createdAt: Date.now() }]
  const { file, ids } = await filled(people)
  // A clock settles within a minute: here it runs a hundred times as fast.
  const fast = preload(`
    const [wait, elapsed] = [setTimeout, performance.now.bind(performance)]
    const [start, first] = [Date.now(), elapsed()]
    performance.now = () => first + (elapsed() - first) * 100
    Date.now = () => Math.round(start + performance.now() - first)
    globalThis.setTimeout = (work, ms, ...given) => wait(work, ms / 100, ...given)`)
  const server = startProgram(['serve', '--port', '0', '--keep-signups', '30d'], {
    env: { PARTNER_API_STORE: `sqlite:${file}` },
    ...fast,
  })
  const ended = ending(server)
  const watched = await openSqliteStore(file)
  while (server.exitCode === null && await watched.findSignup(ids[0]!) !== undefined) {
    await new Promise(setImmediate)
  }
  server.kill('SIGTERM')
  t.match(await ended, { code: 0 })
  t.same((await watched.listSignups(undefined, undefined, 9)).map(({ id }) => id), [ids[1]])
  await watched.close()
})

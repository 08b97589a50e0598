/** Restores that are killed, and PostgreSQL databases that are reconciled. */
import { once } from 'node:events'
import { existsSync, readdirSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import postgres from 'postgres'
import { type Test, test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { useServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import { documentOf, ending, newFile, programOn, runProcess, startProgram } from '../support/cli-program.ts'
import { postgresPlace, restoreAfterADay, restoreOfUse, sqlitePlace } from '../support/restores.ts'

test('a restore that is killed at any step leaves the old store or the narrowed one', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
  const { data: { id } } = await json('keys', 'issue', 'acme', '--name', 'K')
  await place.backUp()
  await run('keys', 'revoke', id)
  const file = place.url.replace('sqlite:', '')
  let isDone = false
  // Steps are changes of the folder's files: about forty.
  for (let steps = 1; !isDone; steps += 6) {
    const child = startProgram(place.restore)
    let count = 0
    const watcher = watch(dirname(file), () => ++count === steps && child.kill('SIGKILL'))
    const { code, signal, stderr } = await ending(child)
    watcher.close()
    isDone = signal === null
    t.equal(isDone ? code : signal, isDone ? 0 : 'SIGKILL', stderr)
    t.ok(existsSync(file))
    t.equal((await json('keys', 'show', id)).data.state, 'revoked', `killed at step ${steps}`)
    if (isDone) t.ok(steps > 1, 'it was killed before')
  }
  t.notMatch(readdirSync(dirname(file)).join(' '), 'partial', 'what killed restores have left is removed')
})

test('on PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const server = await useServer()
  t.teardown(() => server.close())

  await t.test('a store that is restored after a day of changes', async (t) => {
    await restoreAfterADay(t, await postgresPlace(server))
  })

  await t.test('a store that is restored after a day of use', async (t) => {
    await restoreOfUse(t, await postgresPlace(server), 5)
  })

  /** A store with a partner and a key, and its backup. */
  async function backedUp() {
    const place = await postgresPlace(server)
    const { run, json } = programOn(place.url)
    await run('migrate')
    await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
    const { data: { id } } = await json('keys', 'issue', 'acme', '--name', 'K')
    await place.backUp()
    const restored = programOn(place.restored)
    const reconcile = ['store', 'reconcile', '--replaced', place.url]
    return { place, run, json, id: id as string, restored, reconcile }
  }

  /** Locks the partners of a store, before which keys are narrowed. */
  async function lockPartners(t: Test, url: string) {
    const name = new URL(url).pathname.slice(1)
    const { admin } = server
    const sql = postgres(server.adminUrl(name), { max: 1 })
    t.teardown(() => sql.end({ timeout: 0 }))
    const lock = await sql.reserve()
    await lock`BEGIN`
    await lock`LOCK TABLE partner_api.partner`
    return {
      /** Whether another transaction waits for a lock. */
      async waiting(): Promise<boolean> {
        const rows = await admin`
          select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = ${name}`
        return rows.length > 0
      },
      async release(): Promise<void> {
        await lock`ROLLBACK`
        lock.release()
      },
    }
  }

  await t.test('a reconciliation that is killed has changed nothing, and can be repeated', async (t) => {
    const { place, run, id, restored } = await backedUp()
    await run('keys', 'revoke', id)
    const seal = (await restored.json('audit', 'seal')).data
    const { waiting, release } = await lockPartners(t, place.restored)
    const child = startProgram(place.restore)
    await until(waiting, 'the reconciliation to wait')
    child.kill('SIGKILL')
    await once(child, 'close')
    await release()
    await until(async () => !await waiting(), 'its transaction to end')
    t.same((await restored.json('audit', 'seal')).data, seal)
    t.match(documentOf(await runProcess([...place.restore, '--json'])), { data: { narrowed: { keys: 1 } } })
    t.equal((await restored.json('keys', 'show', id)).data.state, 'revoked')
  })

  await t.test('a replaced store that cannot be read needs --force', async (t) => {
    const place = await postgresPlace(server)
    await programOn(place.url).run('migrate')
    await place.backUp()
    const gone = await server.createDatabase()
    const { json } = programOn(place.restored)
    const reconcile = ['store', 'reconcile', '--replaced', gone]
    t.match(await json(...reconcile), {
      code: 3,
      error: { code: 'replaced_unreadable', detail: /pass --force/ },
    })
    t.match(await json(...reconcile, '--force'), { code: 0, data: { mode: 'unknown', since: null } })
    t.match(await json('store', 'reconcile', '--replaced', place.restored), {
      code: 2,
      error: { code: 'usage' },
    })
    const file = `sqlite:${newFile()}`
    t.match(await json('store', 'reconcile', '--replaced', file), {
      code: 2,
      error: { detail: /for SQLite/ },
    })
    t.match(await json(...reconcile, '--as-backed-up'), { code: 2, error: { code: 'usage' } })
  })

  await t.test('a reconciliation with the stores swapped is refused', async (t) => {
    const { place, run, json, restored, reconcile } = await backedUp()
    t.match(await restored.json(...reconcile), { code: 0 })
    t.match(await restored.json(...reconcile), { code: 0 }, 'one that is repeated is not')
    await place.backUp()
    const { data: { id } } = await json('keys', 'issue', 'acme', '--name', 'Since')
    const swapped = ['store', 'reconcile', '--replaced', place.restored]
    for (const more of [[], ['--force'], ['--as-backed-up', '--yes']]) {
      t.match(await json(...swapped, ...more), {
        code: 1,
        error: {
          code: 'replaced_older',
          detail: /^Nothing was changed: .* are --store and --replaced swapped\?/,
        },
      })
    }
    t.match(await json('keys', 'show', id), { data: { state: 'active' } })
    t.match(await run('keys', 'revoke', id), { code: 0 })
    t.match(await restored.json(...reconcile), { code: 0, data: { since: { entries: 2 } } })
  })

  await t.test('one database under two names is not reconciled with itself', async (t) => {
    const { place, json } = await backedUp()
    const { data: seal } = await json('audit', 'seal')
    const hosts = `${server.host}:${server.port}`
    const other = place.url.replace(hosts, `${hosts},${hosts}`)
    t.match(await json('store', 'reconcile', '--replaced', other), {
      code: 2,
      error: { code: 'usage', detail: /are the same store/ },
    })
    t.match(await json('store', 'copy', '--from', place.url, '--to', other), {
      code: 1,
      error: { code: 'refused', detail: /is the source/ },
    })
    t.same((await json('audit', 'seal')).data, seal)
  })

  await t.test('a replaced store that is administered meanwhile is not lost', async (t) => {
    const { place, run, id, restored } = await backedUp()
    const seal = (await restored.json('audit', 'seal')).data
    const { waiting, release } = await lockPartners(t, place.restored)
    const reconciling = runProcess([...place.restore, '--json', '--force'])
    await until(waiting, 'the reconciliation to wait')
    t.match(await run('keys', 'revoke', id), { code: 0 })
    await release()
    t.match(documentOf(await reconciling).error, {
      code: 'replaced_changed',
      detail: /^Nothing was changed: /,
    })
    t.same((await restored.json('audit', 'seal')).data, seal)
    t.match(await runProcess(place.restore), { code: 0 })
    t.match(await restored.json('keys', 'show', id), { data: { state: 'revoked' } })
  })

  await t.test('a restored store that servers use is not reconciled', async (t) => {
    const place = await postgresPlace(server)
    await programOn(place.url).run('migrate')
    const register = async (url: string, name: string) => {
      const sql = postgres(url, { max: 1 })
      await sql`INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, seen_at)
        VALUES (${name}, ${name}, 1000, '', '', floor(extract(epoch FROM clock_timestamp()) * 1000))`
      await sql.end()
    }
    await register(place.url, 'of-the-dump')
    await place.backUp()
    const { json } = programOn(place.restored)
    const reconcile = ['store', 'reconcile', '--replaced', place.url]
    t.match(await json(...reconcile), { code: 0 })
    await register(place.restored, 'web-1')
    t.match(await json(...reconcile), {
      code: 1,
      error: { code: 'refused', detail: /^Servers use .*: web-1\. Stop/ },
    })
  })
})

/** Stores that change after a backup, and what is accepted once it is restored. */
import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Databases } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import { newFile, programOn, type Served, startServing, stopServing } from './cli-program.ts'
import { startReceiver } from './webhook-receiver.ts'

/**
 * A key X of a partner P with two modules: a command before the backup, one since, and what the restored store then has.
 * All that may be narrowed is in test/core/narrow.test.ts.
 */
const day:
  readonly (readonly [before: string, since: string, restored: Readonly<Record<string, unknown>>])[] = [
    ['', '', {}],
    ['', 'keys revoke X', { key: 'revoked' }],
    ['keys disable X', 'keys enable X', { key: 'disabled' }],
    ['', 'scopes remove X read:plans', { scopes: ['read:industries'] }],
    ['', 'partners suspend P', { partner: 'suspended' }],
    ['', 'modules deactivate P pricing', { modules: ['industries'] }],
  ]

export interface Place {
  readonly url: string
  open(url: string): Promise<Store>
  /** Copies the store while nothing has it open. */
  backUp(): Promise<void>
  /** Arguments that restore the backup, with `--store`. */
  readonly restore: readonly string[]
  /** The restored store. */
  readonly restored: string
}

/** Starts a server that could call the receiver. */
function serveWebhooks(url: string, keyFile: string): Promise<Served> {
  const options = ['--allow-private-webhooks', '--webhook-key-file', keyFile]
  return startServing(['serve', '--port', '0', ...options], url)
}

export function sqlitePlace(): Place {
  const file = newFile()
  const url = `sqlite:${file}`
  return {
    url,
    open: (url) => openSqliteStore(url.replace('sqlite:', ''), { migrate: false }),
    async backUp() {
      const { code, stderr } = await programOn(url).run('store', 'backup', `${file}.backup`)
      if (code !== 0) throw new Error(stderr)
    },
    restore: ['--store', url, 'store', 'restore', `${file}.backup`, '--replace'],
    restored: url,
  }
}

export async function postgresPlace(server: Databases): Promise<Place> {
  const url = await server.createDatabase()
  const restored = await server.createDatabase()
  const [from, to] = [url, restored].map((each) => new URL(each).pathname.slice(1))
  return {
    url,
    open: (url) => openPostgresStore(url, { migrate: false }),
    // As pg_dump and pg_restore do.
    async backUp() {
      await server.dropDatabase(restored)
      await until(async () => {
        const { admin } = server
        const copying = admin`create database ${admin(to!)} owner ${admin(server.user)} template ${
          admin(from!)
        }`
        return await copying.then(() => true, () => false)
      }, 'the database to be free')
    },
    restore: ['--store', restored, 'store', 'reconcile', '--replaced', url],
    restored,
  }
}

export async function restoreAfterADay(t: Test, place: Place): Promise<void> {
  const env = { PARTNER_API_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64') }
  const { json } = programOn(place.url, { env })
  const restored = programOn(place.restored)
  const ids: string[] = []
  const run = async (command: string, index = 0) => {
    const words = command.split(' ').map((word) => ({ X: ids[index]!, P: `partner-${index}` })[word] ?? word)
    const { data, error } = await json(...words)
    t.equal(error?.detail, undefined, command)
    return data
  }
  await run('migrate')
  for (const [index, [before]] of day.entries()) {
    await run('partners create P --name P --module industries pricing', index)
    ids.push((await run('keys issue P --name K', index)).id)
    if (before !== '') await run(before, index)
  }
  const { id: webhook } = await run('webhooks create --url https://hooks.example --event key.revoked')
  await run('keys issue P --name C --claim 9d --public-url http://localhost')
  await place.backUp()
  const { sequence } = await run('audit seal')
  for (const [index, [, since]] of day.entries()) if (since !== '') await run(since, index)
  const changes = await run(`audit list --after ${sequence}`)
  const { data, code } = await json(...place.restore)
  t.equal(code, 0)
  t.same(data.changes, changes, 'the entries since the backup are printed')
  const narrowed = { keys: 2, partners: 2 }
  t.match(data, { mode: 'narrowed', narrowed, disabled_webhooks: [webhook], revoked_claims: 1 })

  const show = async (...words: string[]) => (await restored.json(...words)).data
  for (const [index, [before, since, expected]] of day.entries()) {
    const { state: key, scopes } = await show('keys', 'show', ids[index]!)
    const { state: partner, modules } = await show('partners', 'show', `partner-${index}`)
    const all = { key: 'active', partner: 'active', modules: ['industries', 'pricing'] }
    const wanted = { ...all, scopes: ['read:industries', 'read:plans'], ...expected }
    t.same({ key, partner, modules, scopes }, wanted, `${before}, ${since}`)
  }
  t.match(await restored.run('audit', 'verify'), { code: 0 })
  t.match(await show('webhooks', 'list'), [{ id: webhook, state: 'disabled' }])
  t.match(await show('claims', 'list'), [{ state: 'revoked' }])
}

/**
 * What is no administration: deliveries, idempotency, quotas and imported keys.
 *
 * @param left How many requests of a month of 8 are left, of which 3 came before the backup, and 1 since.
 */
export async function restoreOfUse(t: Test, place: Place, left: number): Promise<void> {
  const { json } = programOn(place.url)
  const receiver = await startReceiver()
  t.teardown(receiver.close)
  const keyFile = `${newFile()}.webhook-key`
  const secretFile = `${newFile()}.secret`
  writeFileSync(keyFile, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })
  writeFileSync(secretFile, randomBytes(24).toString('base64'), { mode: 0o600 })
  await json('migrate')
  await json(
    'partners',
    'create',
    'acme',
    '--name',
    'A',
    '--module',
    'signup',
    'industries',
    '--limit',
    'month=8',
  )
  const { data: { key } } = await json('keys', 'issue', 'acme', '--name', 'K')
  const imported = ['kept', 'revoked'].map((name) => ({
    name,
    text: `old_${randomBytes(24).toString('hex')}`,
  }))
  const lines = imported.map(({ name, text }) => {
    const digest = createHmac('sha256', readFileSync(secretFile, 'utf8')).update(text.slice(4)).digest('hex')
    return JSON.stringify({ partner: 'acme', name, digest })
  })
  const scheme = ['--algorithm', 'hmac-sha256', '--prefix', 'old_', '--secret-file', secretFile]
  const importing = programOn(place.url, { input: lines.join('\n') })
  const { data: { lines: [, revoked] } } = await importing.json('keys', 'import', '-', ...scheme)
  const hook = `--url ${receiver.url} --event signup.created --allow-private --webhook-key-file ${keyFile}`
  const { data: webhook } = await json('webhooks', 'create', ...hook.split(' '))

  async function use<T>(url: string, work: (use: ReturnType<typeof requestsOf>) => Promise<T>): Promise<T> {
    const store = await place.open(url)
    const api = createPartnerApi({ store })
    const result = await work(requestsOf(api, key))
    await api.close()
    await store.close()
    return result
  }

  const first = await use(place.url, async ({ signUp, status }) => {
    t.same([await status(), await status()], [200, 200])
    return await signUp('first')
  })
  const deliveries = async (url: string): Promise<string[]> =>
    (await programOn(url).json('webhooks', 'deliveries', webhook.id)).data.map(({ id }: { id: string }) => id)
  const queued = await deliveries(place.url)
  t.equal(queued.length, 1)
  await place.backUp()
  const since = await use(place.url, ({ signUp }) => signUp('second'))
  await json('keys', 'revoke', revoked.id)
  t.match(await programOn(place.url).json(...place.restore), { code: 0 })

  await use(place.restored, async ({ signUp, status, verify }) => {
    t.same(await signUp('first'), { ...first, replayed: 'true' })
    const again = await signUp('second')
    t.match(again, { status: 201, replayed: null })
    t.not(again.id, since.id)
    t.same(await Promise.all(imported.map(({ text }) => verify(text))), [200, 401])
    for (let count = 0; count < left - 2; count++) t.equal(await status(), 200)
    t.equal(await status(), 429)
  })
  const { json: restored } = programOn(place.restored)
  await restored('webhooks', 'enable', webhook.id)
  t.same(await deliveries(place.restored), queued, 'while it was disabled, nothing was queued for it')
  const served = await serveWebhooks(place.restored, keyFile)
  await receiver.delivery(({ headers }) => headers['webhook-id'] === queued[0])
  await stopServing(served)
  t.equal(receiver.received.length, 1)
}

/** Requests of a key to a service. */
function requestsOf(api: PartnerApi, key: string) {
  const send = (path: string, init: RequestInit, text = key) => {
    const headers = { 'content-type': 'application/json', 'x-service-partner-key': text, ...init.headers }
    return api.fetch(new Request(`http://localhost/service/${path}`, { ...init, headers }))
  }
  return {
    status: async () => (await send('public/industries?partner=acme', {})).status,
    verify: async (text: string) => {
      const body = JSON.stringify({ partner: 'acme' })
      return (await send('developer/verify-key', { method: 'POST', body }, text)).status
    },
    async signUp(name: string) {
      const body = JSON.stringify({ partner: 'acme', email: `${name}@mail.example`, name })
      const init = { method: 'POST', body, headers: { 'idempotency-key': `idempotency-${name}` } }
      const response = await send('partner/signups', init)
      const { data } = await response.json()
      return {
        status: response.status,
        id: data?.id as string,
        replayed: response.headers.get('idempotent-replayed'),
      }
    },
  }
}

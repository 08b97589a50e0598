/** Stores that change after a backup, and what is accepted once it is restored. */
import { createHmac, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Databases } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import { newFile, programOn, type Served, startServing, stopServing } from './cli-program.ts'
import { startReceiver } from './webhook-receiver.ts'

/** A key X of a partner P with two modules: commands before the backup, and those of the day after it. */
const day: readonly (readonly [before: string, since: string])[] = [
  ['', ''],
  ['', 'keys revoke X'],
  ['', 'keys disable X'],
  ['keys disable X', 'keys enable X'],
  ['', 'keys rotate X --overlap 0'],
  ['', 'keys rotate X --overlap 1s'],
  ['keys rotate X --overlap 9d', 'keys revoke X'],
  ['', 'keys update X --expires 1s'],
  ['keys update X --expires 9d', 'keys update X --never'],
  ['', 'keys update X --allow 192.0.2.0/24'],
  ['keys update X --allow 192.0.2.0/24', 'keys update X --clear-allow'],
  ['keys update X --allow 192.0.2.0/24 10.0.0.0/8', 'keys update X --allow 192.0.2.7 203.0.113.0/24'],
  ['keys update X --allow 10.0.0.0/8', 'keys update X --allow 192.0.2.0/24'],
  ['', 'scopes remove X read:plans'],
  ['scopes remove X read:plans', 'scopes grant X read:plans'],
  ['', 'modules deactivate P pricing'],
  ['modules deactivate P pricing', 'modules activate P pricing'],
  ['', 'partners suspend P'],
  ['partners suspend P', 'partners resume P'],
  ['', 'partners remove P --yes'],
  ['', 'partners update P --no-self-service'],
]

const paths = ['public/industries', 'public/plans']
export const hosts = ['192.0.2.7', '192.0.2.8', '10.0.0.1', '203.0.113.1']

export interface Place {
  readonly url: string
  open(url: string): Promise<Store>
  /** Copies the store while nothing has it open. */
  backUp(): Promise<void>
  /** Arguments that restore the backup, with `--store`. */
  readonly restore: readonly string[]
  /** The restored store, and where the replaced one is then. */
  readonly restored: string
  replaced(): string
}

export type Issued = { readonly partner: string; readonly id: string; readonly key: string }

/** Which requests of keys a store admits, as text. Each key also asks whether it may rotate itself. */
export async function admitted(store: Store, issued: readonly Issued[]): Promise<string[]> {
  const api = createPartnerApi({ store }, { limits: { authfail: { quota: 0, windowSeconds: 1 } } })
  const found: string[] = []
  for (const { partner, id, key } of issued) {
    for (const path of paths) {
      for (const hostname of hosts) {
        const headers = { 'x-service-partner-key': key }
        const request = new Request(`http://localhost/service/${path}?partner=${partner}`, { headers })
        const { status } = await api.fetch(request, { remoteAddr: { hostname } })
        if (status === 200) found.push(`${partner} ${id} ${path} ${hostname}`)
      }
    }
    const stored = (await store.findKey(id))?.partner
    for (const each of stored?.selfService ?? []) found.push(`${partner} ${each}`)
  }
  await api.close()
  return found
}

async function aDay(place: Place) {
  const { json } = programOn(place.url)
  const run = async (command: string): Promise<void> => {
    const { code, error } = await json(...command.split(' '))
    if (code !== 0) throw new Error(`${command}: ${error.detail}`)
  }
  const receiver = await startReceiver()
  const keyFile = `${newFile()}.webhook-key`
  writeFileSync(keyFile, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })
  await run(`migrate`)
  const issued: Issued[] = []
  const rows: { readonly since: readonly string[] }[] = []
  for (const [index, [before, since]] of day.entries()) {
    const partner = `partner-${index}`
    const commands = (text: string) =>
      text.split('; ').filter(Boolean)
        .map((command) => command.replaceAll(/\bX\b/g, id).replaceAll(/\bP\b/g, partner))
    await run(`partners create ${partner} --name P --module industries pricing --self-service rotate`)
    const { data: { id, key } } = await json('keys', 'issue', partner, '--name', 'K')
    issued.push({ partner, id, key })
    for (const command of commands(before)) await run(command)
    rows.push({ since: commands(since) })
  }
  const hook = `--url ${receiver.url} --event key.revoked --allow-private --webhook-key-file ${keyFile}`
  const { data: webhook } = await json('webhooks', 'create', ...hook.split(' '))
  const claim = [
    'keys',
    'issue',
    'partner-0',
    '--name',
    'C',
    '--claim',
    '9d',
    '--public-url',
    'http://localhost',
  ]
  const { data: { link } } = await json(...claim)
  await place.backUp()
  const { data: { sequence: after } } = await json('audit', 'seal')
  await run(`webhooks disable ${webhook.id}`)
  for (const { since } of rows) {
    for (const command of since) await run(command)
  }
  const lost = (await json('keys', 'issue', 'partner-0', '--name', 'Lost')).data
  issued.push({ partner: 'partner-0', ...lost })
  const { data: entries } = await json('audit', 'list', '--after', String(after))
  return { issued, receiver, keyFile, link: new URL(link).pathname, webhook: webhook.id, entries }
}

/** What the backup and the replaced store both admit. */
async function expectedOf(place: Place, backup: string, issued: readonly Issued[]) {
  const [before, since] = [await place.open(backup), await place.open(place.url)]
  try {
    const [was, is] = [await admitted(before, issued), await admitted(since, issued)]
    return was.filter((request) => is.includes(request))
  } finally {
    await before.close()
    await since.close()
  }
}

async function checkRestored(
  t: Test,
  place: Place,
  expected: string[],
  { issued, ...more }: Day,
): Promise<void> {
  const store = await place.open(place.restored)
  t.same(await admitted(store, issued), expected, 'what both stores admit')
  await store.close()
  const { json, run } = programOn(place.restored)
  t.match(await run('audit', 'verify'), { code: 0 })
  const { data: webhooks } = await json('webhooks', 'list')
  t.match(webhooks, [{ id: more.webhook, state: 'disabled' }])
  const served = await serveWebhooks(place.restored, more.keyFile)
  const claim = await fetch(served.url + more.link, { method: 'POST' })
  t.equal(claim.status, 410, 'the link is revoked')
  await json('keys', 'revoke', issued[0]!.id, '--wait')
  await stopServing(served)
  t.same(more.receiver.received, [], 'no webhook is called')
}

/** Starts a server that could call the receiver. */
function serveWebhooks(url: string, keyFile: string): Promise<Served> {
  const options = ['--allow-private-webhooks', '--webhook-key-file', keyFile]
  return startServing(['serve', '--port', '0', ...options], url)
}

type Day = Awaited<ReturnType<typeof aDay>>

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
    replaced: () => {
      const name = readdirSync(dirname(file)).find((name) => name.includes('replaced-'))
      return `sqlite:${dirname(file)}/${name}`
    },
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
    replaced: () => url,
  }
}

export async function restoreAfterADay(t: Test, place: Place, backup: string): Promise<void> {
  const changed = await aDay(place)
  t.teardown(changed.receiver.close)
  // The overlap and the expiry of a second are over.
  const { id } = changed.issued[5]!
  const { json } = programOn(place.url)
  await until(async () => (await json('keys', 'show', id)).data.state === 'expired', 'the overlap to end')
  const expected = await expectedOf(place, backup, changed.issued)
  t.ok(expected.length > 20)
  const { data, code } = await programOn(place.url).json(...place.restore)
  t.equal(code, 0)
  t.same(data.changes, changed.entries, 'the entries since the backup are printed')
  t.match(data, { mode: 'narrowed', disabled_webhooks: [changed.webhook], revoked_claims: 1 })
  await checkRestored(t, place, expected, changed)
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
  const [keyFile, secretFile] = [`${newFile()}.webhook-key`, `${newFile()}.secret`]
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
export function requestsOf(api: PartnerApi, key: string) {
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

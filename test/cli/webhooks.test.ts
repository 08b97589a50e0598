/** The commands below `webhooks`, but for deliveries themselves: test/adapters/webhooks.test.ts. */
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { newFile, programOn } from '../support/cli-program.ts'

const file = newFile()
const { json, run } = programOn(`sqlite:${file}`, {
  env: { PARTNER_API_WEBHOOK_KEY: Buffer.alloc(32, 1).toString('base64') },
})
await json('migrate')
const created = await json(
  'webhooks',
  'create',
  '--url',
  'https://hooks.example/a',
  '--event',
  'signup.created',
  'key.issued',
)
const { id } = created.data

/** Enqueues a delivery and settles it. */
async function settle(name: string, state: 'delivered' | 'failed'): Promise<string> {
  const store = await openSqliteStore(file)
  const message = `msg_${name.padStart(20, '0')}`
  const event = {
    id: message,
    type: 'webhook.test',
    partner: undefined,
    createdAt: Date.now(),
    payload: '{}',
  } as const
  await store.webhooks.enqueue([event], id)
  await store.webhooks.leaseDeliveries(id, 1, 1_000)
  const result = { webhook: id, id: message, state, retryMs: 0, lastStatus: 500, lastError: 'status 500' }
  await store.webhooks.settleDeliveries([result])
  await store.close()
  return message
}

t.test('a webhook is described in words', async (t) => {
  const shown =
    /^id: {7}whk_\w+\nurl: {6}https\S+\nevents: {3}signup\.created key\.issued\npartner: {2}all\nstate: {4}active\ncreated: {2}.* UTC\n$/
  t.match((await run('webhooks', 'show', id)).stdout, shown)
  const near = `${id.slice(0, -1)}${id.endsWith('X') ? 'Y' : 'X'}`
  t.match((await run('webhooks', 'show', near)).stderr, `(Did you mean ${id}?)`)
  const { run: runElsewhere } = programOn('memory:')
  const none = { code: 0, stdout: '', stderr: /There are no webhooks yet\.\n$/ }
  t.match(await runElsewhere('webhooks', 'list'), none)
})

t.test('a webhook is changed, disabled, enabled and removed, with an audit entry for each', async (t) => {
  t.match(created.data, { state: 'active', partner: null, secret: /^whsec_/ })
  const { data: moved } = await json('webhooks', 'update', id, '--url', 'https://hooks.example/b')
  t.match(moved, { url: 'https://hooks.example/b', events: ['signup.created', 'key.issued'] })
  t.equal((await json('webhooks', 'update', id, '--event', 'key.revoked')).data.events.join(), 'key.revoked')
  t.equal((await json('webhooks', 'disable', id)).data.state, 'disabled')
  t.equal((await json('webhooks', 'disable', id)).data.state, 'disabled', 'again: no change')
  t.equal((await json('webhooks', 'enable', id)).data.state, 'active')
  t.same((await json('webhooks', 'show', id)).data.state, 'active')
  const { data: entries } = await json('audit', 'list')
  t.equal(entries.length, 5, 'none where nothing changed')
  t.notMatch(JSON.stringify(entries), /whsec_|sealed|secrets/)
  t.equal((await json('audit', 'verify')).code, 0)
})

t.test('deliveries are listed by state, and sent again', async (t) => {
  const failed = await settle('a', 'failed')
  const delivered = await settle('b', 'delivered')
  const listed = await json('webhooks', 'deliveries', id, '--state', 'failed')
  t.match(listed.data, [{ id: failed, state: 'failed', attempts: 1, last_status: 500 }])
  t.equal((await json('webhooks', 'deliveries', id, '--limit', '1')).data.length, 1)
  t.same((await json('webhooks', 'replay', id, '--delivery', failed, delivered)).data, { deliveries: 2 })
  const { data } = await json('webhooks', 'deliveries', id, '--state', 'pending')
  t.same(data.map((each: { id: string }) => each.id).sort(), [failed, delivered].sort())
})

t.test('pending deliveries are sent again at once; unknown ones, and those of a disabled webhook, are refused', async (t) => {
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  const name = (await store.webhooks.listDeliveries(id, 'pending', undefined, 1))[0]!.id
  const wait = { webhook: id, id: name, state: 'pending', lastStatus: 500, lastError: 'status 500' } as const
  await store.webhooks.settleDeliveries([{ ...wait, retryMs: 86_400_000 }])
  t.same((await json('webhooks', 'replay', id, '--delivery', name)).data, { deliveries: 1 })
  const { code, error } = await json('webhooks', 'replay', id, '--delivery', name, 'msg_none')
  t.match({ code, error }, {
    code: 1,
    error: { code: 'delivery_not_found', detail: /msg_none/, deliveries: 1 },
  })
  for (const command of ['disable', 'remove']) {
    const { code, data } = await json('webhooks', command, id, '--dry-run')
    t.match({ code, data }, { code: 0, data: { id, dry_run: true, pending_deliveries: 2 } }, command)
  }
  t.equal((await json('webhooks', 'show', id)).data.state, 'active', 'a dry run changes nothing')
  await json('webhooks', 'disable', id)
  t.match(await json('webhooks', 'replay', id, '--delivery', name), {
    code: 1,
    error: { code: 'webhook_disabled', remedy: { command: 'webhooks enable', args: [id] } },
  })
  t.match((await json('webhooks', 'show', id)).data.pending_removed_at, /^\d{4}-/)
  await json('webhooks', 'enable', id)
  t.equal((await json('webhooks', 'show', id)).data.pending_removed_at, null)
})

t.test('the end of the longest overlap is shown', async (t) => {
  for (const overlap of ['2h', '1h']) await json('webhooks', 'rotate-secret', id, '--overlap', overlap)
  const { data } = await json('webhooks', 'show', id)
  t.ok(Date.parse(data.old_secret_expires_at) > Date.now() + 90 * 60_000)
})

t.test('wrong input is refused', async (t) => {
  const other = `whk_${'0'.repeat(20)}`
  const creation = ['create', '--url', 'https://h.example', '--event', 'key.issued', '--partner'] as const
  await json('partners', 'create', 'gone', '--name', 'Gone')
  const { data: hook } = await json('webhooks', ...creation, 'gone')
  await json('partners', 'remove', 'gone', '--yes')
  t.equal(
    (await json('webhooks', 'show', hook.id)).data.state,
    'disabled',
    'the webhook of a removed partner',
  )
  for (
    const [code, exit, ...args] of [
      ['webhook_not_found', 1, 'show', other],
      ['webhook_not_found', 1, 'remove', other, '--yes'],
      ['webhook_not_found', 1, 'deliveries', other],
      ['delivery_not_found', 1, 'replay', id, '--delivery', 'msg_none'],
      ['usage', 2, 'replay', id],
      ['usage', 2, 'update', id],
      ['usage', 2, 'update', id, '--url', 'http://hooks.example'],
      ['usage', 2, 'create', '--url', 'https://hooks.example', '--event', 'key.lost'],
      ['partner_not_found', 1, ...creation, 'none'],
      ['partner_removed', 1, ...creation, 'gone'],
      ['partner_removed', 1, 'enable', hook.id],
    ] as const
  ) {
    const { code: exitCode, error } = await json('webhooks', ...args)
    t.same([error?.code, exitCode], [code, exit], args.join(' '))
  }
})

t.test('a removed webhook is gone', async (t) => {
  t.equal((await json('webhooks', 'remove', id)).code, 2, 'it is confirmed first')
  t.equal((await json('webhooks', 'remove', id, '--yes')).code, 0)
  t.notOk((await json('webhooks', 'list')).data.some((each: { id: string }) => each.id === id))
})

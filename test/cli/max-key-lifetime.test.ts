/** The longest lifetime of keys on the command line. Its rules are in test/contract/store/lifetimes.ts. */
import { test } from 'tap'
import { createStore } from '../support/cli-store.ts'

const DAY = 86_400_000

test('it is set, shown and removed', async (t) => {
  const { run, json } = await createStore()
  t.same((await json('store', 'show')).data, { key_prefix: 'spk', max_key_lifetime_ms: null })
  t.match((await run('store', 'show')).stdout, /^max key lifetime: +none$/m)
  const set = await json('store', 'update', '--max-key-lifetime', '90d', '--wait')
  t.match(set, { code: 0, data: { max_key_lifetime_ms: 90 * DAY }, receipt: {} })
  for (const [text, shown] of [['36h', '36h'], ['120m', '2h'], ['90s', '90s'], ['365d', '365d']] as const) {
    const { stdout } = await run('store', 'update', '--max-key-lifetime', text)
    t.match(stdout, new RegExp(`^max key lifetime: +${shown}$`, 'm'))
  }
  t.match((await run('audit', 'list')).stdout, /store\.updated/)
  t.match(await run('audit', 'verify'), { code: 0 })
  t.equal((await json('store', 'update', '--no-max-key-lifetime')).data.max_key_lifetime_ms, null)
})

test('wrong input is refused', async (t) => {
  const { run, json, refuses } = await createStore()
  await run('store', 'update', '--max-key-lifetime', '30d')
  await refuses(t, {
    'store update': '2 usage',
    'store update --max-key-lifetime': '2 usage',
    'store update --max-key-lifetime 1y': '2 usage',
    'store update --max-key-lifetime 36526d': '2 usage',
    'store update --max-key-lifetime 0': '1 invalid_duration',
    'keys issue acme --name Shop': '1 invalid_expiry',
    'keys issue acme --name Shop --expires 31d': '1 invalid_expiry',
  })
  const { error } = await json('keys', 'issue', 'acme', '--name', 'My shop')
  t.equal(
    error.detail,
    'Keys of this store must have an expiry within 30d. ' +
      'To change that: partner-api store update --max-key-lifetime DURATION',
  )
  t.equal((await json('keys', 'issue', 'acme', '--name', 'Shop', '--expires', '30d')).code, 0)
})

/** `--claim` of `keys issue` and `keys rotate`, `claims`, and what a restore says of links. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { claimId, findClaim, useClaim } from '../../core/admin/claims.ts'
import { programOn, temporaryFolder } from '../support/cli-program.ts'

async function created() {
  const folder = temporaryFolder()
  const file = join(folder, 'store.db')
  const program = programOn(`sqlite:${file}`)
  await program.json('partners', 'create', 'acme', '--name', 'Acme', '--module', 'banner')
  /** Uses a link as a server does. */
  const use = async (link: string) => {
    const store = await openSqliteStore(file)
    const claim = await findClaim(store, claimId(store.sha256(link.split('/').at(-1)!)))
    const { key } = await useClaim(store, claim, Date.now)
    await store.close()
    return key
  }
  return { folder, file, use, ...program }
}

const url = ['--public-url', 'https://api.example/base/']
const issue = ['keys', 'issue', 'acme', '--name', 'Shop', '--claim', '24h', ...url]

test('a link is printed, listed, used once and revoked', async (t) => {
  const { folder, use, run, json, refuses } = await created()
  const made = await json(...issue, '--service-name', 'travel')
  t.match(made, {
    code: 0,
    data: {
      id: /^clm_[0-9a-f]{24}$/,
      partner: 'acme',
      name: 'Shop',
      rotates: null,
      state: 'open',
      key_id: null,
      link: /^https:\/\/api\.example\/base\/travel\/claim\/[0-9A-Za-z]{32}$/,
    },
  })
  t.equal(Date.parse(made.data.expires_at) - Date.parse(made.data.created_at), 86_400_000)
  t.same((await json('keys', 'list')).data, [], 'no key is made')
  const { id: keyId } = await use(made.data.link)
  const rotation = await run(...[
    'keys',
    'rotate',
    keyId,
    '--claim',
    '1h',
    '--overlap',
    '0',
    ...url,
    '--quiet',
  ])
  t.match(rotation, {
    code: 0,
    stdout: /^https:\/\/api\.example\/base\/service\/claim\/\w{32}\n$/,
    stderr: '',
  })
  const out = join(folder, 'link')
  t.match(await json(...issue, '--out', out), { code: 0, data: { out } })
  t.match(readFileSync(out, 'utf8'), /^https:.*\/claim\/\w{32}\n$/)
  t.equal(statSync(out).mode & 0o777, 0o600)
  const [first, second, third] = (await json('claims', 'list', 'acme')).data
  t.match(first, { id: made.data.id, state: 'used', key_id: keyId })
  t.match(second, { name: 'Shop', rotates: keyId, state: 'open' })
  t.match(await json('claims', 'revoke', third.id), { code: 0, data: { state: 'revoked' } })
  t.match(await json('claims', 'revoke', third.id), { code: 0, data: { state: 'revoked' } })
  t.same((await json('claims', 'list', '--open')).data.map(({ id }: { id: string }) => id), [second.id])
  t.match(
    (await run('claims', 'list', '--limit', '1')).stdout,
    /^ID +PARTNER +NAME +ROTATES +STATE +ENDS +KEY\nclm_\w+ +acme +Shop +– +used +– +\w{12}\n$/,
  )
  t.match(
    (await run('claims', 'list', '--open')).stdout,
    /\nclm_\w+ +acme +Shop +\w{12} +open +in [\w ]+? +–\n$/,
  )
  t.match(await run('audit', 'verify'), { code: 0, stdout: /keys, claims, modules and webhooks match it/ })
  await refuses(t, {
    [`claims revoke ${made.data.id}`]: '1 claim_spent',
    'claims revoke clm_1': '1 claim_not_found',
    'claims list missing': '1 partner_not_found',
    'claims list --after clm_1': '1 claim_not_found',
    'keys issue acme --name A --claim 24h': '2 usage',
    'keys issue acme --name A --public-url https://a.example': '2 usage',
    'keys issue acme --name A --service-name travel': '2 usage',
    'keys issue acme --name A --claim 24h --public-url ftp://a.example': '2 usage',
    'keys issue acme --name A --claim soon --public-url https://a.example': '2 usage',
    'keys issue acme --name A --claim 0 --public-url https://a.example': '1 invalid_duration',
    'keys issue acme --name A --claim 31d --public-url https://a.example': '1 invalid_duration',
    'keys issue acme --name A --claim 2d --expires 1d --public-url https://a.example': '1 invalid_expiry',
    'keys issue acme --name A --claim 2d --scope read:plans --public-url https://a.example':
      '1 module_inactive',
    'keys rotate Zt81mQv04KsD --claim 2d --dry-run --public-url https://a.example': '2 usage',
    'keys rotate Zt81mQv04KsD --claim 2d --public-url https://a.example': '1 key_not_found',
  })
  const { stdout, stderr } = await run(...issue)
  t.match(
    stdout,
    /^link: {5}https.*\nid: .*\npartner: {2}acme\nname: {5}Shop\nstate: {4}open\ncreated: .*\nends: .* UTC\n$/,
  )
  t.equal(stderr, 'This link is shown only once. It makes the key, once, for the one who opens it.\n')
})

test('a link to a key without scopes says so', async (t) => {
  const { run, json } = await created()
  await json('modules', 'deactivate', 'acme', 'banner')
  t.match(await run(...issue), { code: 0, stderr: /The key has no scopes/ })
})

test('a restore revokes the open links of the backup', async (t) => {
  const { folder, use, run, json } = await created()
  const used = await json(...issue)
  const open = await json(...issue)
  const spent = await json(...issue)
  await use(spent.data.link)
  const backup = join(folder, 'backup.db')
  t.equal((await json('store', 'backup', backup)).code, 0)
  await use(used.data.link)
  const later = await json(...issue)
  const plan = await json('store', 'restore', backup, '--dry-run')
  t.match(plan.data, { revoked_claims: 2 })
  const { data, stderr } = await json('store', 'restore', backup, '--replace')
  t.match(data, { revoked_claims: 2 })
  t.match(stderr, /^warning: The restore revoked 2 open links: make others\.$/m)
  const claims: readonly { id: string; state: string }[] = (await json('claims', 'list')).data
  const states = Object.fromEntries(claims.map(({ id, state }) => [id, state]))
  t.same(states, { [used.data.id]: 'revoked', [open.data.id]: 'revoked', [spent.data.id]: 'used' })
  t.notOk(later.data.id in states)
  t.equal((await run('audit', 'verify', '--seal', data.seal)).code, 0)
})

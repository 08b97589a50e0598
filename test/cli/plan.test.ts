/** Plans of changes: `scopes plan`. */
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration, type NewKey } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { programOn, temporaryFolder } from '../support/cli-program.ts'

const file = join(temporaryFolder(), 'store.db')
const { run, json, refuses } = programOn(`sqlite:${file}`)
const store = await openSqliteStore(file)
const partners = createPartnerAdministration(store, { actor: 'test' })
const keys = createKeyAdministration(store, { actor: 'test' })
const issue = async (more: Partial<NewKey> = {}) =>
  (await keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })).key

test('scopes plan finds the scopes of modules, their endpoints and the commands, without a store', async (t) => {
  const { json: planned } = programOn('sqlite:/nonexistent/store.db')
  t.match(await planned('scopes', 'plan', '--module', 'signup', 'banner', '--service-name', 'x'), {
    code: 0,
    data: {
      scopes: [
        { scope: 'read:banner', module: 'banner', feature: 'Banner embeds', endpoints: { 0: /^GET \/x\// } },
        { scope: 'create:partner-signups', module: 'signup', endpoints: ['POST /x/partner/signups'] },
      ],
      commands: [
        'partner-api modules activate SLUG banner signup',
        /^partner-api keys issue SLUG --name ".*" --scope read:banner create:partner-signups$/,
      ],
    },
  })
  await refuses(t, {
    'scopes plan': '2 usage',
    'scopes plan --module nothing': '2 usage',
    'scopes plan --module banner --partner nobody': '1 partner_not_found',
  })
})

test('scopes plan --partner asks only for what the partner lacks', async (t) => {
  await partners.create({ slug: 'acme', name: 'Acme', modules: ['banner', 'pricing', 'profiles'] })
  const plan = async (...modules: string[]) =>
    (await json('scopes', 'plan', '--partner', 'acme', '--module', ...modules)).data
  t.match(await plan('banner', 'signup'), {
    key_id: null,
    commands: ['partner-api modules activate acme signup', /keys issue acme .*--scope read:banner create:/],
  })
  await issue({ environment: 'test' })
  t.equal((await plan('banner')).key_id, null, 'a test key does not suffice')
  const [, two, disabled] = [
    await issue(),
    await issue({ scopes: ['read:banner', 'read:plans'] }),
    await issue(),
  ]
  await keys.disable(disabled.id)
  t.match(await plan('banner', 'pricing'), { key_id: two.id, commands: { length: 0 } })
  t.match(await run('scopes', 'plan', '--partner', 'acme', '--module', 'banner'), {
    code: 0,
    stdout: /^SCOPE +MODULE +FOR +OPENS\nread:banner +banner +Banner embeds +GET /,
    stderr: `Key ${two.id} (Plugin) holds these scopes.\n`,
  })
  await partners.suspend('acme')
  t.same((await plan('banner')).commands, ['partner-api partners resume acme'])
  await partners.create({ slug: 'gone', name: 'Gone', modules: [] })
  await partners.remove('gone')
  await refuses(t, { 'scopes plan --partner gone --module banner': '1 partner_removed' })
})

test('the end', async () => {
  await store.close()
})

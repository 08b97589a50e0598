/** Who the audit trail names for what a command changes. */
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { documentOf, runProgram, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const env = { PARTNER_API_STORE: `sqlite:${join(folder.path, 'store.db')}`, USER: 'not-asked-for' }
const run = (args: string[], input?: string) =>
  runProgram(args, input === undefined ? { env } : { env, input })

/** Type and actor of all entries. */
async function trail(): Promise<string[]> {
  const store = await openSqliteStore(join(folder.path, 'store.db'))
  const entries = await store.listAudit(0, 100)
  await store.close()
  return entries.map(({ type, actor }) => `${type} ${actor}`)
}

test('it is the user of the system, or who a command says', async (t) => {
  const plan = JSON.stringify({
    slug: 'pro',
    name: 'Pro',
    description: 'For teams',
    price: { amount_minor: 1, currency: 'EUR' },
    interval: 'month',
    features: [],
  })
  const commands: [args: string[], input?: string][] = [
    [['partners', 'create', 'acme', '--name', 'Acme', '--module', 'pricing']],
    [['--actor', 'Ada “🤖”', 'keys', 'issue', 'acme', '--name', 'Plugin']],
    [['content', 'import', 'plans', '-', '--actor', 'Grace'], plan],
    [['content', 'remove', 'plans', 'pro', '--actor', 'x'.repeat(200)]],
    [['modules', 'deactivate', 'acme', 'pricing']],
  ]
  for (const [args, input] of commands) {
    t.match(await run(args, input), { code: 0 }, args.join(' ').slice(0, 40))
  }
  const user = userInfo().username
  t.same(await trail(), [
    `partner.created ${user}`,
    'key.issued Ada “🤖”',
    'content.imported Grace',
    `content.removed ${'x'.repeat(200)}`,
    `module.deactivated ${user}`,
  ])
})

test('a name that the trail could not show is refused before anything is done', async (t) => {
  const before = await trail()
  for (const actor of ['', ' ', 'a\nb', 'a\u0007', 'x'.repeat(201)]) {
    const ended = await run(['partners', 'suspend', 'acme', '--actor', actor, '--json'])
    t.equal(ended.code, 2)
    t.match(documentOf(ended).error, { code: 'usage', detail: /1 to 200 characters/ })
  }
  t.same(await trail(), before)
})

test('the end', (t) => {
  folder.remove()
  t.end()
})

/** The store beside the tables of Drizzle in one database, with a role for each (docs/own-database.md). */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import t from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { temporaryFolder } from '../support/cli-program.ts'
import { drizzleKitIn } from './drizzle-kit.ts'

const skip = hasServer() ?? false

t.test(
  'migrations, drift checks and a reset of Drizzle leave the store alone, and it them',
  { skip },
  async (t) => {
    const server = await startServer()
    t.teardown(() => server.close())
    const url = await server.createDatabase()
    const database = new URL(url).pathname.slice(1)
    await server.admin.unsafe(`
    CREATE ROLE shop LOGIN PASSWORD '${server.password}';
    ALTER DATABASE ${database} OWNER TO shop;
    GRANT CREATE ON DATABASE ${database} TO partner_api`)
    const shopUrl = url.replace('partner_api', 'shop')
    const site = postgres(shopUrl, { max: 1, onnotice: () => {} })
    t.teardown(() => site.end())
    const drizzle = createDrizzle(shopUrl)

    drizzle.define('')
    await drizzle.run('generate')
    await drizzle.run('migrate')
    await site`INSERT INTO orders VALUES ('a17', 'Lamp')`
    const tables = () =>
      site`SELECT * FROM information_schema.columns WHERE table_schema IN ('public', 'drizzle')`
    const before = await tables()

    const store = await openPostgresStore(url)
    t.teardown(() => store.close())
    await createPartnerAdministration(store, { actor: 'shop' })
      .create({ slug: 'acme', name: 'Acme', modules: ['pricing'] })
    const { text } = await createKeyAdministration(store, { actor: 'shop' })
      .issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
    const api = createPartnerApi({ store }, { maxStalenessMs: 0 })
    t.teardown(() => api.close())
    const works = async (when: string) => {
      const headers = { 'x-service-partner-key': text }
      const request = new Request('http://a.example/service/public/plans?partner=acme', { headers })
      t.equal((await api.fetch(request)).status, 200, when)
      t.match(await verifyAuditLog(store), { brokenAt: undefined, differences: [] })
    }
    await works('beside the tables')
    t.same(await tables(), before, 'the store has changed none of them')
    t.match(await drizzle.run('push', '--force'), 'No changes detected')
    t.match(await drizzle.run('check'), 'fine')
    t.notMatch(await drizzle.pull(), 'partner_key', 'nothing of the store is read')
    await t.rejects(
      site`SELECT * FROM partner_api.partner_key`,
      { code: '42501' },
      'the site may not read it',
    )
    const own = postgres(url, { max: 1 })
    await t.rejects(
      own`SELECT * FROM orders`,
      { code: '42501' },
      'and the store may not read those of the site',
    )
    await own.end()

    drizzle.define(', note: text()')
    await drizzle.run('generate')
    await drizzle.run('migrate')
    await works('after a migration')
    t.match(await site`SELECT note FROM orders`, [{ note: null }])

    await site.unsafe('DROP SCHEMA public CASCADE; DROP SCHEMA drizzle CASCADE; CREATE SCHEMA public')
    await works('after a reset')
    await drizzle.run('migrate')
    t.match(await drizzle.run('push', '--force'), 'No changes detected')
    const again = await openPostgresStore(url)
    t.match(await again.findPartner('acme'), { name: 'Acme' })
    await again.close()
    const [{ count } = { count: 0 }] = await server.admin`
    SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'partner_api' AND datname = ${database}`
    t.ok(count >= 1 && count <= 9, `${count} connections`)
  },
)

/** A project with Drizzle. */
function createDrizzle(url: string) {
  const folder = temporaryFolder()
  const run = drizzleKitIn(folder)
  const config = (out: string) => ({
    dialect: 'postgresql',
    schema: './schema.ts',
    out,
    dbCredentials: { url },
  })
  writeFileSync(join(folder, 'drizzle.config.json'), JSON.stringify(config('./drizzle')))
  writeFileSync(join(folder, 'pull.config.json'), JSON.stringify(config('./pulled')))
  mkdirSync(join(folder, 'pulled'))

  return {
    run: (...words: string[]) => run([...words, '--config', 'drizzle.config.json']),
    /** @param more Further columns of the table. */
    define(more: string): void {
      const columns = `id: text().primaryKey(), item: text().notNull()${more}`
      const table = `export const orders = pgTable('orders', { ${columns} })`
      writeFileSync(
        join(folder, 'schema.ts'),
        `import { pgTable, text } from 'drizzle-orm/pg-core'\n${table}\n`,
      )
    },
    /** @returns The schema that it makes of the database. */
    async pull(): Promise<string> {
      await run(['pull', '--config', 'pull.config.json'])
      return readFileSync(join(folder, 'pulled/schema.ts'), 'utf8')
    },
  }
}

/** examples/shop: Express and Drizzle beside the service in one PostgreSQL (docs/own-database.md). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import t from 'tap'
import { blocksOf } from '../integration/docs.ts'
import { attempt, ROOT } from '../package/installed.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { programOn, runProgram } from '../support/cli-program.ts'
import { fixture, type IndustryLine, type ProfileLine } from '../support/world.ts'
import { readFirst, sameDirectories, servePublicProfiles } from './directories.ts'
import { drizzleKitIn } from './drizzle-kit.ts'
import { createProject, start } from './project.ts'

const project = await createProject(['@types'])
t.teardown(() => project.remove())

/** The arguments of the commands of the page that begin like this. */
function commandsOf(start: string): string[][] {
  const lines = blocksOf('docs/own-database.md').filter(({ language }) => language === 'console')
    .flatMap(({ code }) => code.trim().split('\n')).filter((line) => line.startsWith(`${start} `))
  if (lines.length === 0) throw new Error(`The page has no command ${start}.`)
  return lines.map((line) =>
    Array.from(line.slice(start.length).matchAll(/"([^"]*)"|\S+/g), ([word, quoted]) => quoted ?? word)
  )
}

t.test('the files compile with the tsconfig.json of the page', async (t) => {
  const { folder } = await project.open('strict')
  drizzleKitIn(folder)
  const shop = join(folder, 'shop')
  const json = blocksOf('docs/own-database.md').filter(({ language }) => language === 'json')
  t.equal(json.length, 1)
  writeFileSync(join(shop, 'tsconfig.json'), json[0]!.code)
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { code, stdout } = await attempt(process.execPath, [tsc], shop)
  t.strictSame([code, stdout], [0, ''])
})

t.test('the site runs', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const url = await server.createDatabase()
  const database = new URL(url).pathname.slice(1)
  await server.admin.unsafe(`
    CREATE ROLE shop LOGIN PASSWORD '${server.password}';
    ALTER DATABASE ${database} OWNER TO shop;
    GRANT CREATE ON DATABASE ${database} TO partner_api`)
  const DATABASE_URL = url.replace('partner_api', 'shop')
  const { folder, key } = await project.open('site')
  const shop = join(folder, 'shop')
  const kit = drizzleKitIn(shop)
  for (const words of commandsOf('npx drizzle-kit')) await kit(words, { DATABASE_URL })

  const client = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => client.end())
  const db = drizzle(client)
  const { searchColumns } = await import(join(shop, 'companies.ts'))
  const { companies, orders, sectors } = await import(join(shop, 'schema.ts'))
  const industries = fixture<IndustryLine>('industries')
  await db.insert(sectors).values(industries.map(({ slug, name }) => ({ code: slug, label: name })))
  const profiles = fixture<ProfileLine>('profiles')
    .filter((sample) => sample.published_at !== null && sample.visible_to === null)
  await db.insert(companies).values(profiles.map((sample) => {
    const texts = {
      title: sample.name,
      tagline: sample.headline,
      about: sample.description ?? null,
      keywords: sample.tags ?? [],
    }
    return {
      ...texts,
      ...searchColumns(texts),
      handle: sample.slug,
      country: sample.country,
      sector: sample.industry,
      logo: sample.logo_url ?? null,
      liveSince: new Date(sample.published_at!),
    }
  }))
  await db.insert(orders).values(['a17', 'b03', 'c42'].map((id) => ({ id, partner: 'demo', item: 'Lamp' })))

  await project.fill(url)
  const keyFile = join(folder, 'acme.key')
  const env = { DATABASE_URL, PARTNER_API_STORE: url }
  const { url: site, stop } = await start(t, shop, [process.execPath, 'server.ts'], env)
  for (const words of commandsOf('npx partner-api')) {
    const args = words.map((word) => word.replace('http://127.0.0.1:3000', site).replace('acme.key', keyFile))
    t.equal((await runProgram(args, { env: { PARTNER_API_STORE: url } })).code, 0, words.join(' '))
  }
  const { json } = programOn(url)
  await json('modules', 'activate', 'demo', 'orders', '--wait')
  const { data: { key: own } } = await json('keys', 'issue', 'demo', '--name', 'Shop')
  const mounted = { url: site, key: own }
  await sameDirectories(t, mounted, { url: await servePublicProfiles(t, folder), key })

  await client`UPDATE companies SET title = 'Aardvark & Sons', title_key = 'aardvark sons'
    WHERE handle = ${(await readFirst(mounted)).slug}`
  t.equal((await readFirst(mounted)).name, 'Aardvark & Sons', 'a change shows at once')

  const call = (path: string) => fetch(site + path, { headers: { 'x-service-partner-key': own } })
  const page = await (await call('/service/orders?partner=demo&limit=2')).json()
  t.strictSame(page.data, [{ id: 'a17', item: 'Lamp' }, { id: 'b03', item: 'Lamp' }])
  const rest = await call(`/service/orders?partner=demo&limit=2&cursor=${page.page.next_cursor}`)
  t.strictSame((await rest.json()).data, [{ id: 'c42', item: 'Lamp' }])
  t.equal(await (await call('/invoices/a17?partner=demo')).text(), 'Invoice for Demo partner: Lamp\n')
  t.equal((await call('/invoices/z99?partner=demo')).status, 404)
  t.match(await (await call('/metrics')).text(), 'route="orders"')
  t.equal(await stop(), 0)
})

/** Starts and calls every example. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { binary, ROOT, run } from '../package/installed.ts'
import { startWorker } from '../support/workerd-process.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import { programOn } from '../support/cli-program.ts'
import { readFirst, sameDirectories, servePublicProfiles, serveStore } from './directories.ts'
import { holdsMounted } from './mounted.ts'
import { createProject, EXAMPLES, start, storeIn, write } from './project.ts'
import { makeShop, rename } from './shop.ts'

const project = await createProject()
t.teardown(() => project.remove())

const programs = {
  'express.js': [process.execPath],
  'fastify.js': [process.execPath],
  'hono.js': [process.execPath],
  'deno.js': [binary('deno'), 'run', '-A'],
  'bun.js': [binary('bun')],
}

for (const [name, command] of Object.entries(programs)) {
  await t.test(name, async (t) => {
    const { folder, key } = await project.open(name.replace('.js', ''))
    const { url } = await start(t, folder, [...command, name])
    t.equal(await (await fetch(url)).text(), 'The rest of the site')
    await holdsMounted(t, { url, key })
  })
}

await t.test('next-route.ts', async (t) => {
  const { folder, key } = await project.open('next')
  await t.test('importing the module, as a build does, opens no store', async (t) => {
    const aside = join(folder, 'build')
    mkdirSync(aside)
    await run(process.execPath, ['--input-type=module', '--eval', "await import('../next-route.ts')"], aside)
    t.same(readdirSync(aside), [])
  })
  // Like Next.js, calls the export named after the method.
  write(
    folder,
    'next.js',
    `import { serve } from '@hono/node-server'
    import * as route from './next-route.ts'
    const context = { params: Promise.resolve({ path: [] }) }
    const answer = (request) => route[request.method](request, context)
    serve({ fetch: answer, port: Number(process.env.PORT) }, () => console.log('ready'))`,
  )
  const { url } = await start(t, folder, [process.execPath, 'next.js'])
  await holdsMounted(t, { url, key }, { 'x-forwarded-for': '198.51.100.7' })
})

await t.test('worker.js', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const DATABASE_URL = await server.createDatabase()
  const { folder } = await project.open('worker')
  const key = await project.fill(DATABASE_URL)
  const worker = await startWorker('worker.js', folder, {
    variables: { DATABASE_URL },
    durableObjects: { PARTNER_API: 'PartnerApi' },
  })
  t.teardown(() => worker.end())
  await holdsMounted(t, { url: worker.url, key })
})

await t.test('client.js', async (t) => {
  const { folder, key } = await project.open('client')
  const env = { PARTNER_API_URL: await serveStore(t, folder), PARTNER_API_KEY: key }
  const command = ['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  for (const runtime of [[process.execPath], [binary('bun')], [binary('deno'), 'run', '-A']]) {
    const [first = '', ...words] = [...command, ...runtime, 'client.js']
    const { stdout } = await run(first, words, folder)
    t.match(stdout, /^.+, Germany\n/m)
    t.match(stdout, /^.+, France\n/m)
    t.match(stdout, /^received: sgn_\w+\n$/m)
  }
})

await t.test('own-tables.ts', async (t) => {
  const { folder, key } = await project.open('own-tables')
  const shop = join(folder, 'shop.db')
  makeShop(shop)
  const own = { url: (await start(t, folder, [process.execPath, 'own-tables.ts'])).url, key }
  await sameDirectories(t, own, { url: await servePublicProfiles(t, folder), key })

  rename(shop, (await readFirst(own)).slug, 'Aardvark & Sons')
  const renamed = async () => (await readFirst(own)).name === 'Aardvark & Sons'
  await until(renamed, 'a change in the tables to appear')
})

await t.test('own-signups.ts', async (t) => {
  const { folder, key } = await project.open('own-signups')
  const leads = () => {
    const crm = new DatabaseSync(join(folder, 'crm.db'))
    try {
      return crm.prepare('SELECT signup AS id, mail, is_test FROM lead ORDER BY mail').all().map((row) => ({
        ...row,
      }))
    } finally {
      crm.close()
    }
  }
  const signUp = async (url: string, email: string, idempotencyKey: string) => {
    const response = await fetch(`${url}/service/partner/signups`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-partner-key': key,
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify({ partner: 'demo', email, name: 'Ada Lovelace', country: 'GB' }),
    })
    const { data } = await response.json()
    return { status: response.status, id: data?.id, isReplayed: response.headers.has('idempotent-replayed') }
  }
  // The process dies right before, or right after, the table has the signup.
  const example = readFileSync(join(folder, 'own-signups.ts'), 'utf8')
  const kill = "process.kill(process.pid, 'SIGKILL')"
  const crashes = {
    before: `${kill}; return signups.createSignup(s)`,
    after: `signups.createSignup(s); ${kill}`,
  }
  for (const [moment, body] of Object.entries(crashes)) {
    const name = `crash-${moment}.ts`
    const crashing = example.replace(
      '{ store, signups }',
      `{ store, signups: { createSignup(s) { ${body} } } }`,
    )
    t.not(crashing, example)
    write(folder, name, crashing)
    const { url } = await start(t, folder, [process.execPath, name])
    await t.rejects(signUp(url, `${moment}@example.com`, moment), `dies ${moment} the insertion`)
  }
  t.strictSame(leads().map(({ mail }) => mail), ['after@example.com'])
  t.equal((await listed(folder)).length, 0, 'nothing is counted yet')

  const { url } = await start(t, folder, [process.execPath, 'own-signups.ts'])
  for (const moment of Object.keys(crashes)) {
    const sent = await signUp(url, `${moment}@example.com`, moment)
    t.match(sent, { status: 201, isReplayed: true })
    t.equal(leads().find(({ mail }) => mail === `${moment}@example.com`)?.['id'], sent.id)
  }
  const same = await Promise.all(Array.from({ length: 12 }, () => signUp(url, 'same@example.com', 'same')))
  t.strictSame([...new Set(same.map(({ status }) => status))], [201])
  t.equal(same.filter(({ isReplayed }) => !isReplayed).length, 1)
  t.strictSame(leads().map(({ mail }) => mail), [
    'after@example.com',
    'before@example.com',
    'same@example.com',
  ])
  t.match(await signUp(url, 'other@example.com', 'same'), { status: 422 })

  const rows = await listed(folder)
  t.strictSame(rows.map(({ id }) => id).sort(), leads().map(({ id }) => id).sort())
  for (const { email, name, country } of rows) t.strictSame([email, name, country], ['', '', 'GB'])
  const files = readdirSync(folder).filter((name) => name.startsWith('partner-api.db'))
  const stored = Buffer.concat(files.map((name) => readFileSync(join(folder, name)))).toString('latin1')
  t.match(stored, rows[0]!.id)
  t.notMatch(stored, /@example\.com|Lovelace/, 'the store has no personal data')
})

for (const runtime of ['node', 'bun', 'deno']) {
  await t.test(`orders/server.ts, ${runtime}`, async (t) => {
    const { folder, key } = await project.open(`orders-${runtime}`)
    const words = runtime === 'deno' ? ['run', '-A'] : []
    const program = [runtime === 'node' ? process.execPath : binary(runtime), ...words, 'orders/server.ts']
    const { url, stop } = await start(t, folder, program)
    const { json } = programOn(storeIn(folder))
    const issue = async (slug: string, ...more: string[]): Promise<string> =>
      (await json('keys', 'issue', slug, '--name', 'Shop', ...more)).data.key
    const call = async (key: string, path: string, init: RequestInit = {}) => {
      const headers = { ...init.headers, 'x-service-partner-key': key }
      const response = await fetch(new URL(path, url), { ...init, headers })
      const text = await response.text()
      const body = /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : undefined
      return { status: response.status, headers: response.headers, text, body }
    }
    const list = (partner: string) => `/service/orders?partner=${partner}&limit=2`
    const place = (key: string, order: object, idempotencyKey?: string) =>
      call(key, '/service/orders', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...idempotencyKey && { 'idempotency-key': idempotencyKey },
        },
        body: JSON.stringify({ partner: 'demo', ...order }),
      })

    t.equal(await fetch(url).then((response) => response.text()), 'The rest of the site')
    t.match((await call(key, list('demo'))).body, { code: 'scope_missing', required_scope: 'read:orders' })
    await json('partners', 'create', 'acme', '--name', 'Acme', '--module', 'orders', 'ordering')
    await json('modules', 'activate', 'demo', 'orders', 'ordering', '--wait')
    const demo = await issue('demo')
    const test = await issue('demo', '--test')
    const acme = await issue('acme')

    const placed: object[] = []
    for (const quantity of [1, 2, 3]) {
      const { status, body } = await place(demo, { item: 'Lamp', quantity })
      t.match([status, body.data], [201, { item: 'Lamp', quantity }])
      placed.push(body.data)
    }
    const same = await Promise.all(Array.from({ length: 8 }, () => place(demo, { item: 'Chair' }, 'k1')))
    t.strictSame([...new Set(same.map(({ status }) => status))], [201])
    const [{ body: chair } = { body: undefined }, ...repeated] = same
    for (const { body } of repeated) t.strictSame(body, chair)
    placed.push(chair.data)
    t.match((await place(demo, { item: 'Table' }, 'k1')).body, { status: 422, code: 'idempotency_mismatch' })
    t.match((await place(demo, { item: '', quantity: 100 })).body, { errors: [{ pointer: '/item' }, {}] })
    const ofTest = await place(test, { item: 'Chair' }, 'k1')
    t.equal(ofTest.status, 201)

    const listed: { placed_at: string }[] = []
    for (let next = list('demo'); next !== '';) {
      const { headers, body } = await call(demo, next)
      listed.push(...body.data)
      next = /<(.*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.replace(/^/, '/service/') ?? ''
    }
    t.same(new Set(listed), new Set(placed), 'without those of test keys')
    t.strictSame(listed, listed.toSorted((a, b) => b.placed_at.localeCompare(a.placed_at)), 'newest first')
    t.strictSame((await call(test, list('demo'))).body.data, [ofTest.body.data])
    t.strictSame((await call(acme, list('acme'))).body.data, [])

    const invoice = (key: string, partner: string) =>
      call(key, `/invoices/${chair.data.id}?partner=${partner}`)
    const { status, headers, text } = await invoice(demo, 'demo')
    t.match([status, text], [200, 'Invoice for Demo partner: 1 × Chair\n'])
    t.match(headers.get('content-type'), 'text/plain')
    t.match(headers.get('x-request-id'), /^req_/)
    for (const [key, partner] of [[test, 'demo'], [acme, 'acme']] as const) {
      t.equal((await invoice(key, partner)).text, 'There is no such order.\n')
    }
    t.match((await invoice(acme, 'demo')).body, { status: 403, code: 'partner_mismatch' })
    t.match((await invoice('', 'demo')).body, { status: 401, code: 'key_missing' })
    await json('modules', 'deactivate', 'acme', 'orders', '--wait')
    t.match((await invoice(acme, 'acme')).body, { code: 'module_inactive', required_module: 'orders' })

    t.equal(await stop(), 0)
    const { url: again } = await start(t, folder, program)
    const { body: { data } } = await call(demo, `${again}/service/partner/reports/summary?partner=demo`)
    t.match(data.requests.by_endpoint, [
      { method: 'POST', path: '/service/orders', requests: 13, errors: 2 },
      { method: 'GET', path: '/service/orders', requests: 3, errors: 1 },
      { method: 'GET', path: '/invoices/{id}', requests: 1, errors: 0 },
    ])
  })
}

t.test('the examples are formatted', async (t) => {
  // deno.json excludes them, because Deno cannot resolve their packages.
  const style = ['--line-width=110', '--single-quote', '--no-semicolons', '--indent-width=2']
  await t.resolves(run(binary('deno'), ['fmt', '--check', '--no-config', ...style, EXAMPLES], ROOT))
})

/** The signups that the command line lists. */
async function listed(folder: string): Promise<Record<string, string>[]> {
  return (await programOn(storeIn(folder)).json('signups', 'list')).data
}

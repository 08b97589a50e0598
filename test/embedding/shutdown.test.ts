/** Each example ends by SIGTERM and SIGINT, whatever its clients do, and writes its last counts. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { binary } from '../package/installed.ts'
import { until } from '../postgres/until.ts'
import { connectRaw } from '../support/raw-connection.ts'
import { createProject, start, write } from './project.ts'
import { makeShop } from './shop.ts'

const node = [process.execPath]
const bun = [binary('bun')]
const deno = [binary('deno'), 'run', '-A']
const programs: readonly (readonly [name: string, runtime: readonly string[]])[] = [
  ['express.js', node],
  ['fastify.js', node],
  ['hono.js', node],
  ['deno.js', deno],
  ['bun.js', bun],
  ['own-tables.ts', node],
  ['own-signups.ts', node],
  ['orders/server.ts', node],
  ['orders/server.ts', bun],
  ['orders/server.ts', deno],
]

/** Far more than a program answers once it has received a signal. */
const maxAnswers = 1_000

const project = await createProject()
t.teardown(() => project.remove())

t.setTimeout(120_000)

for (const [name, runtime] of programs) {
  const program = `${name}, ${basename(runtime[0]!)}`
  await t.test(`${program}: SIGTERM ends a busy connection`, async (t) => {
    const { folder, key } = await project.open(program)
    if (name === 'own-tables.ts') makeShop(join(folder, 'shop.db'))
    const { url, stop } = await start(t, folder, [...runtime, name])
    const connection = await connectTo(url)
    t.teardown(() => connection.destroy())
    for (let count = 0; count < 5; count++) {
      connection.get('/service/public/countries?partner=demo', key)
    }
    for (let count = 0; count < 5; count++) {
      t.equal((await connection.answer()).status, 200)
    }

    const finish = connection.begin(key)
    await connection.flushed()
    const ended = stop()
    await until(() => isRefused(url), 'new connections to be refused')
    finish()
    const statuses = new Set<number>()
    let answers = 0
    try {
      for (; answers < maxAnswers; answers++) {
        statuses.add((await connection.answer()).status)
        connection.get('/service/health')
      }
    } catch {
      // The program has closed the connection.
    }
    t.ok(answers < maxAnswers, `the connection ended after ${answers} responses`)
    t.strictSame([...statuses], [200])
    connection.destroy()
    t.equal(await ended, 0)

    const store = new DatabaseSync(join(folder, 'partner-api.db'))
    const rows = store.prepare('SELECT * FROM key_usage').all()
    store.close()
    t.match(rows.filter((row) => Object.values(row).includes('countries')), [{ requests: 5 }])
  })
}

for (const name of ['express.js', 'hono.js']) {
  await t.test(`${name}: SIGTERM loses no request of a client that sends one after the other`, async (t) => {
    const { folder } = await project.open(`${name}-busy`)
    const { url, stop } = await start(t, folder, [...node, name])
    const connection = await connectTo(url)
    t.teardown(() => connection.destroy())
    let ended: Promise<number | null> | undefined
    for (let count = 0;; count++) {
      connection.get('/service/health')
      const { status, headers } = await connection.answer()
      if (status !== 200) t.fail(`status ${status}`)
      if (headers.get('connection')?.toLowerCase() === 'close') break
      if (count === 50) ended = stop()
    }
    t.equal(await ended, 0)
  })
}

for (const [name, runtime] of programs.filter(([name]) => name.endsWith('.js'))) {
  await t.test(`${name}: SIGINT ends a request that does not`, async (t) => {
    const { folder, key } = await project.open(`${name}-stuck`)
    const example = readFileSync(join(folder, name), 'utf8')
    const hastened = example.replace('10_000', '100').replace(
      'closeServer(server)',
      'closeServer(server, 100)',
    )
    t.not(hastened, example)
    write(folder, name, hastened)
    const { url, said, stop } = await start(t, folder, [...runtime, name])
    const connection = await connectTo(url)
    t.teardown(() => connection.destroy())
    connection.get('/service/health')
    t.equal((await connection.answer()).status, 200)
    connection.begin(key)
    await connection.flushed()
    t.equal(await stop('SIGINT'), 0)
    t.notMatch(said(), 'write_failed', 'nothing is written after the store was closed')
  })
}

async function isRefused(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  try {
    const connection = await connectRaw(hostname, Number(port))
    connection.destroy()
    return false
  } catch {
    return true
  }
}

/** Connects to the site of an example. */
async function connectTo(url: string) {
  const { hostname, port, host } = new URL(url)
  const connection = await connectRaw(hostname, Number(port))
  return {
    ...connection,
    get(path: string, key?: string): void {
      const field = key === undefined ? '' : `X-Service-Partner-Key: ${key}\r\n`
      connection.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${field}\r\n`)
    },
    /** Sends a request but for the end of its body. @returns Sends that. */
    begin(key: string): () => void {
      const body = JSON.stringify({ partner: 'demo' })
      const fields = [
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        `X-Service-Partner-Key: ${key}`,
      ]
      const head = ['POST /service/developer/verify-key HTTP/1.1', `Host: ${host}`, ...fields, '', ''].join(
        '\r\n',
      )
      connection.write(head + body.slice(0, 5))
      return () => connection.write(body.slice(5))
    },
  }
}

/** One-time links on two servers of a store, and on one that is killed between its commit and its response. */
import { type Test, test } from 'tap'
import { newFile, preload, programOn, startServing, stopServing } from '../support/cli-program.ts'
import { hasServer } from '../postgres/binaries.ts'
import { freePort } from '../postgres/free-port.ts'
import { useServer } from '../postgres/server.ts'

/** Ends the process at the first 201, whose key is committed. */
const killed = preload(`
  import { ServerResponse } from 'node:http'
  const { end } = ServerResponse.prototype
  ServerResponse.prototype.end = function (...given) {
    if (this.statusCode === 201) process.kill(process.pid, 'SIGKILL')
    return end.apply(this, given)
  }
`)

async function keyOnce(t: Test, store: string): Promise<void> {
  const { json, run } = programOn(store)
  t.equal((await run('migrate')).code, 0)
  await json(
    'partners',
    'create',
    'acme',
    '--name',
    'Acme',
    '--module',
    'banner',
  )
  const issue = [
    'keys',
    'issue',
    'acme',
    '--name',
    'Shop',
    '--claim',
    '1h',
    '--public-url',
  ]
  const serve = ['serve', '--port', '0', '--log', 'all']

  const ports = [await freePort(), await freePort()]
  const servers = await Promise.all(
    ports.map((port) => startServing([...serve, '--metrics', `${port}`, '--metrics-by', 'partner'], store)),
  )
  const { link } = (await json(...issue, servers[0]!.url)).data
  const { pathname } = new URL(link)
  const statuses = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const response = await fetch(servers[index % 2]!.url + pathname, {
        method: 'POST',
      })
      await response.text()
      return response.status
    }),
  )
  t.same(
    statuses.toSorted((a, b) => a - b),
    [201, ...Array(59).fill(410)],
    'one request gets the key',
  )
  for (const port of ports) {
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    t.match(metrics, /^partner_api_requests_total\{.*"use-claim".*\}/m)
    t.notMatch(metrics, pathname.slice(-32), 'no metric has the token')
  }
  const [first] = (await json('keys', 'list')).data
  for (
    const { stderr } of await Promise.all(
      servers.map((server) => stopServing(server)),
    )
  ) {
    t.match(stderr, '/service/claim/…')
    t.notMatch(stderr, pathname.slice(-32), 'no log has the token')
  }

  const dying = await startServing(serve, store, killed)
  const { link: lost, id } = (await json(...issue, dying.url)).data
  await t.rejects(fetch(lost, { method: 'POST' }), 'no response')
  t.equal((await dying.ended).signal, 'SIGKILL')
  const keys: { readonly id: string }[] = (await json('keys', 'list')).data
  t.equal(keys.length, 2, 'one key for each link')
  const made = keys.find((key) => key.id !== first.id)
  t.match(
    made,
    { last_used_at: null, state: 'active' },
    'the key that got lost shows as unused',
  )
  const claim = (await json('claims', 'list')).data.find((
    each: { readonly id: string },
  ) => each.id === id)
  t.match(claim, { state: 'used', key_id: made!.id })
  t.equal((await run('audit', 'verify')).code, 0)
}

test('on SQLite', (t) => keyOnce(t, `sqlite:${newFile()}`))

test('on PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const server = await useServer()
  t.teardown(() => server.close())
  await keyOnce(t, await server.createDatabase())
})

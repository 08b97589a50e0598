/** `serve --reuse-port`: two processes serve one port. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import process from 'node:process'
import { test } from 'tap'
import { freePort } from '../postgres/free-port.ts'
import { programOn, type Served, startServing, stopServing } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'

const skip = process.platform === 'linux' ? false : 'only Linux spreads connections over processes'
const quota = 600

const serveOn = (
  port: number,
  ...more: string[]
) => ['serve', '--reuse-port', '--port', String(port), ...more]

/** Sends requests on connections of their own, 16 at once. @returns The number of responses by status. */
async function sendMany(port: number, key: string, requests: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  const headers = { 'x-service-partner-key': key, connection: 'close' }
  let sent = 0
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (sent++ < requests) {
      const response = await fetch(`http://127.0.0.1:${port}/service/public/plans?partner=acme`, { headers })
      await response.text()
      counts[response.status] = (counts[response.status] ?? 0) + 1
    }
  }))
  return counts
}

test('two processes on SQLite serve as one', { skip }, async (t) => {
  const { store, issue, url } = await createStore()
  const limited = await issue({ limits: { key: { quota, windowSeconds: 60 } } })
  const revoked = await issue({ limits: { key: { quota: 1_000_000, windowSeconds: 60 } } })
  const port = await freePort()
  const names = ['one', 'two']
  const monitors = [await freePort(), await freePort()]
  const servers: Served[] = []
  for (const [index, name] of names.entries()) {
    const args = ['--replica-name', name, '--metrics', String(monitors[index]), '--limit', 'authfail=0']
    servers.push(await startServing(serveOn(port, ...args), url))
  }
  t.teardown(() => servers.forEach(({ child }) => child.kill('SIGKILL')))
  const monitor = async (index: number, path: string) =>
    await (await fetch(`http://127.0.0.1:${monitors[index]}${path}`)).text()

  const { 200: accepted = 0, 429: refused = 0 } = await sendMany(port, limited.text, quota + 100)
  t.ok(accepted >= 0.98 * quota && accepted <= quota, `${accepted} of ${quota} requests were accepted`)
  t.equal(accepted + refused, quota + 100)
  const counted = await Promise.all(names.map(async (_, index) => {
    const metrics = await monitor(index, '/metrics')
    return [...metrics.matchAll(/^partner_api_requests_total\{.*\} (\d+)/gm)]
      .reduce((sum, [, value]) => sum + Number(value), 0)
  }))
  t.ok(counted.every((count) => count > 0), `the metrics are those of one process: ${counted}`)
  t.equal(counted[0]! + counted[1]!, quota + 100)

  t.same(await sendMany(port, revoked.text, 64), { 200: 64 })
  const { receipt } = await programOn(url).json('keys', 'revoke', revoked.key.id, '--wait')
  t.same(receipt.replicas.map(({ name, applied }) => [name, applied]).sort(), [['one', true], ['two', true]])
  t.same(await sendMany(port, revoked.text, 64), { 401: 64 })

  const [first, second] = servers as [Served, Served]
  t.match(await stopServing(first), { code: 0 })
  t.equal(await monitor(1, '/ready'), 'ready\n')
  await t.rejects(monitor(0, '/ready'), 'readiness is that of one process')
  t.same(await sendMany(port, revoked.text, 16), { 401: 16 })
  t.match(await stopServing(second), { code: 0 })
  await store.close()
})

test('--reuse-port is refused where it cannot be', { skip }, async (t) => {
  const { store, url } = await createStore()
  await store.close()
  const { run } = programOn(url)
  t.match(await run('serve', '--reuse-port', '--port', '0'), { code: 2, stderr: '--reuse-port needs a port' })
  t.match(await run('serve', '--reuse-port', '--store', 'memory:'), { code: 2, stderr: 'memory: store' })
  const variable = programOn(url, { env: { PARTNER_API_SERVE_REUSE_PORT: '1' } })
  t.match(await variable.run('serve', '--port', '0'), { code: 2, stderr: 'PARTNER_API_SERVE_REUSE_PORT' })
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as { readonly port: number }
  t.match(await run(...serveOn(port)), { code: 1, stderr: 'in use by a process without --reuse-port' })
  other.close()
  const platform = Object.getOwnPropertyDescriptor(process, 'platform')!
  Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' })
  t.teardown(() => Object.defineProperty(process, 'platform', platform))
  t.match(await run(...serveOn(port)), { code: 2, stderr: 'Only Linux' })
})

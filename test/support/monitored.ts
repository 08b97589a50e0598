/** Servers with metrics, and a store with sample content. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { programOn, startServing, temporaryFolder } from './cli-program.ts'

const folder = temporaryFolder()

/** The status of the response to a GET. */
export const statusOf = async (url: string): Promise<number> => (await fetch(url)).status

/** A request that the key of `demo` may make. */
export const PROFILES = '/service/public/profiles?partner=demo&limit=5'

/** Starts a server on a store with sample content. */
export async function serveDemo(
  t: Test,
  name: string,
  options: readonly string[] = [],
  command?: readonly string[],
) {
  const storeUrl = `sqlite:${join(folder, name)}`
  const { json } = programOn(storeUrl)
  const { key } = (await json('demo', '--no-serve')).data
  for (const end of ['2d', '10d', '20d']) await json('keys', 'issue', 'demo', '--name', 'x', '--expires', end)
  const { data: [soonest] } = await json('keys', 'list', '--expiring', '3d')
  await json('keys', 'rotate', soonest.id)
  const monitor = `http://127.0.0.1:${await freePort()}`
  const args = ['serve', '--port', '0', '--metrics', new URL(monitor).port, ...options]
  const served = await startServing(args, storeUrl, { ...(command && { command }) })
  t.teardown(() => served.child.kill('SIGKILL'))
  const request = async (path: string, authorization = `Bearer ${key}`, init: RequestInit = {}) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(`${served.url}${path}`, { ...init, headers })
    await response.arrayBuffer()
    return response.status
  }
  const scrape = async () => await (await fetch(`${monitor}/metrics`)).text()
  return { served, monitor, request, scrape, file: join(folder, name) }
}

/** Sends requests of every kind. @returns What is scraped then. */
export async function sendMixedLoad(
  { request, scrape }: Pick<Awaited<ReturnType<typeof serveDemo>>, 'request' | 'scrape'>,
): Promise<string> {
  for (let count = 0; count < 4; count++) await request(PROFILES)
  await request('/service/public/profiles?partner=other')
  await request('/service/public/profiles/none?partner=demo')
  await request('/nowhere')
  await request(PROFILES, 'Bearer wrong')
  await request('/service/developer/verify-key', undefined, { method: 'POST', body: '{"partner":"demo"}' })
  await until(async () => (await scrape()).includes('operation="recordUsage"'), 'the write of request counts')
  return await scrape()
}

/** Checks that a server with a delay is not ready before it stops. */
export async function isNotReadyBeforeStop(
  t: Test,
  name: string,
  command?: readonly string[],
): Promise<void> {
  const options = ['--drain-delay', '600', '--log', 'errors']
  const { served, monitor, request, scrape } = await serveDemo(t, `${name}.db`, options, command)
  t.equal(await request(PROFILES), 200)
  const names = await scrape()
  for (
    const metric of [
      `partner_api_requests_total{route="profiles"`,
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_p99_seconds',
    ]
  ) t.match(names, metric)
  served.child.kill('SIGTERM')
  await until(async () => await statusOf(`${monitor}/ready`) === 503, 'the drain')
  t.equal(await request(PROFILES), 200, 'it accepts connections for the delay')
  const { headers } = await fetch(`${served.url}/service/health`)
  t.equal(headers.get('connection'), 'close')
  t.equal(await statusOf(`${monitor}/live`), 200)
  served.child.kill('SIGINT')
  t.match(await served.ended, { code: null, signal: 'SIGINT' }, 'a second signal ends it at once')
}

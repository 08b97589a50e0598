/** `serve --metrics`: the listener, readiness, and the end of a server. */
import { rmSync } from 'node:fs'
import t from 'tap'
import { until } from '../postgres/until.ts'
import { programOn, runProcess, stopServing } from '../support/cli-program.ts'
import { isNotReadyBeforeStop, serveDemo, statusOf } from '../support/monitored.ts'

const { served, monitor, request, scrape, file } = await serveDemo(t, 'store.db', ['--metrics-by', 'partner'])

t.test('the listener has three paths, and the public port none of them', async (t) => {
  t.same(
    await Promise.all(
      ['/live', '/ready', '/metrics?x', '/', '/service/health'].map((path) => statusOf(monitor + path)),
    ),
    [200, 200, 200, 404, 404],
  )
  const [get, head, post] = await Promise.all(
    ['GET', 'HEAD', 'POST'].map((method) => fetch(`${monitor}/ready`, { method })),
  )
  t.strictSame([head!.status, head!.headers.get('content-length'), await head!.text()], [
    200,
    get!.headers.get('content-length'),
    '',
  ])
  t.strictSame([post!.status, post!.headers.get('allow')], [405, 'GET, HEAD'])
  for (const path of ['/live', '/ready', '/metrics']) t.equal(await request(path), 404, path)
})

t.test('a server whose store is unavailable is not ready, but alive', async (t) => {
  rmSync(file)
  await until(async () => await statusOf(`${monitor}/ready`) === 503, 'the outage')
  t.equal(await statusOf(`${monitor}/live`), 200)
  await until(async () => /^partner_api_store_unavailable 1$/m.test(await scrape()), 'its metric')
  await stopServing(served, 'SIGKILL')
})

t.test('a server is not ready before it stops', (t) => isNotReadyBeforeStop(t, 'node'))

t.test('a server drains after the delay, and other addresses are refused', async (t) => {
  const { served, monitor } = await serveDemo(t, 'drain.db', ['--drain-delay', '1'])
  const { run } = programOn('memory:')
  // In a process of its own, because a server that stops ends its process.
  const second = ['--store', 'memory:', 'serve', '--port', '0', '--metrics', new URL(monitor).port]
  t.match(await runProcess(second), { code: 1, stderr: '--metrics 0 takes a free one' })
  t.match(await run('serve', '--metrics-by', 'partner'), { code: 2, stderr: '--metrics' })
  for (const address of ['x', '1.2.3.4', '70000', ':1']) {
    t.equal((await run('serve', '--metrics', address)).code, 2, address)
  }
  const { code, stderr } = await stopServing(served, 'SIGHUP')
  t.equal(code, 0)
  t.match(stderr, '"event":"stopped"')
})

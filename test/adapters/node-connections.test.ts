/** Connections of Node's server, beyond `test/runtimes/servers.test.ts`. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { mock } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { NodeHttpRequest } from '../../adapters/runtimes/node-request.ts'
import type { HttpResponse } from '../../core/http/message.ts'
import type { RawConnection } from '../support/raw-connection.ts'
import { echo, get, json, post, refuse, serveStub } from './node-server.ts'

const later = <T>(): PromiseWithResolvers<T> => Promise.withResolvers<T>()
const connectRequest = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'

t.test('responses keep the order of their requests', async (t) => {
  const responses = new Map<string, (response: HttpResponse) => void>()
  const all = later<void>()
  const { open } = await serveStub(t, {
    async handle(request) {
      const { target } = request
      if (target === '/at-once') return json(200, { target })
      const body = Buffer.from(await request.body(100)).toString()
      return new Promise((resolve) => {
        responses.set(body, resolve)
        if (responses.size === 3) all.resolve()
      })
    },
  })
  const connection = await open()
  const bodies = ['one', 'two', 'three']
  const requests = bodies.map((body) => post(`Content-Length: ${body.length}`) + body)
  connection.write(`${requests.join('')}${get('/at-once')}no request\r\n\r\n`)
  await all.promise
  for (const body of bodies.toReversed()) responses.get(body)?.(json(200, { target: body }))
  for (const target of [...bodies, '/at-once']) {
    t.equal(JSON.parse((await connection.answer()).body).target, target)
  }
  t.equal((await connection.answer()).status, 400, 'an error waits for its turn')
  t.equal(await connection.ended(), '')
})

t.test('an error waits for the responses before it', async (t) => {
  let received = later<void>()
  let slow = later<HttpResponse>()
  const { open } = await serveStub(t, {
    handle({ target }) {
      if (target !== '/slow') return target === '/' ? refuse('key_missing') : json(200, { target })
      received.resolve()
      return slow.promise
    },
  })
  const chunks = `${post('Transfer-Encoding: chunked')}zz\r\n`
  for (
    const [before, error, status] of [
      [get('/1') + get('/2'), 'no request\r\n\r\n', 400],
      [get('/1') + get('/2'), connectRequest, 400],
      [get('/1') + get('/2'), get('/', 'Host: b'), 400],
      [get('/slow'), connectRequest, 400],
      [get('/slow'), chunks, 401],
    ] as const
  ) {
    received = later()
    slow = later()
    const connection = await open()
    connection.write(before + error)
    if (before.includes('/slow')) {
      await received.promise
      await connection.flushed()
      slow.resolve(json(200, {}))
    } else t.equal((await connection.answer()).status, 200)
    t.equal((await connection.answer()).status, 200, error)
    t.equal((await connection.answer()).status, status, error)
    t.equal(await connection.ended(), '')
  }
})

t.test('no request is processed after the last response', async (t) => {
  let handled = 0
  const { open } = await serveStub(t, {
    handle() {
      handled++
      return json(200, {})
    },
  })
  const connection = await open()
  connection.write(`GET / HTTP/1.1\r\n\r\n${get()}${get()}no request`)
  const answer = await connection.answer()
  t.strictSame([answer.status, answer.headers.get('connection')], [400, 'close'])
  t.equal(await connection.ended(), '')
  connection.write(get())
  await connection.flushed()
  t.equal(handled, 0)
})

t.test('a response may precede the end of the request body', async (t) => {
  const { open } = await serveStub(t, { handle: () => refuse('key_missing') })
  const small = await open()
  small.write(post('Content-Length: 20000') + 'a'.repeat(100))
  t.equal((await small.answer()).status, 401)
  small.write('a'.repeat(19_900) + get())
  t.equal((await small.answer()).status, 401, 'the rest of a small body is skipped')

  for (
    const [name, bytes, rest] of [
      ['a large body', `${post('Content-Length: 20000000')}a`, 'a'.repeat(10_000_000)],
      ['a client that closes', `${post('Content-Length: 20000', 'Connection: close')}a`, 'a'.repeat(19_999)],
      ['an unknown length', `${post('Transfer-Encoding: chunked')}3\r\nabc\r\n`, `0\r\n\r\n${get()}`],
    ] as const
  ) {
    const connection = await open()
    connection.write(bytes)
    const answer = await connection.answer()
    t.strictSame([answer.status, answer.headers.get('connection')], [401, 'close'], name)
    t.equal(await connection.ended(), '')
    connection.write(rest)
    await connection.flushed()
    t.equal(await connection.ended(), '', 'is not reset while the client continues to send')
  }
})

t.test('a client that keeps its half open after the last response is disconnected after 5 s', async (t) => {
  const options = { requestTimeoutMs: 0, headersTimeoutMs: 0, drainTimeoutMs: 2 ** 31 - 1 }
  const { server, open } = await serveStub(t, { handle: () => refuse('key_missing') }, options)
  const connection = await open()
  mock.timers.enable({ apis: ['setTimeout'] })
  connection.write(`${post('Content-Length: 20000000')}a`)
  t.equal((await connection.answer()).status, 401)
  t.equal(await connection.ended(), '')
  mock.timers.tick(5_000)
  mock.timers.reset()
  await server.close()
})

t.test('a client gets 100 (Continue) only when the service reads its body', async (t) => {
  const { open } = await serveStub(t, {
    handle: (request) => request.header('x-read') ? echo(request) : refuse('key_missing'),
  })
  const wanted = await open()
  wanted.write(post('X-Read: a', 'Content-Length: 2', 'Expect: 100-continue'))
  t.equal((await wanted.answer()).status, 100)
  wanted.write('{}')
  t.equal((await wanted.answer()).status, 200)
  for (const [fields, status] of [[[], 401], [['X-Read: a'], 413]] as const) {
    const unwanted = await open()
    unwanted.write(post(...fields, 'Content-Length: 150000', 'Expect: 100-continue'))
    const answer = await unwanted.answer()
    t.strictSame([answer.status, answer.headers.get('connection')], [status, 'close'])
    t.equal(await unwanted.ended(), '')
  }

  const old = await open()
  const asHttp10 = (request: string): string => request.replace('HTTP/1.1', 'HTTP/1.0')
  for (const body of ['one', 'two']) {
    const fields = [
      'Connection: keep-alive',
      'X-Read: a',
      'Expect: 100-continue',
      `Content-Length: ${body.length}`,
    ]
    old.write(asHttp10(post(...fields)) + body)
    const answer = await old.answer()
    t.strictSame([answer.status, answer.headers.get('connection')], [200, 'keep-alive'], 'HTTP/1.0')
    t.equal(JSON.parse(answer.body).hex, Buffer.from(body).toString('hex'))
  }
  old.write(asHttp10(get()))
  t.equal((await old.answer()).headers.get('connection'), 'close')
  t.equal(await old.ended(), '')
})

t.test('a slow client gets all of its response, even from a server that drains', async (t) => {
  const body = Buffer.alloc(32 * 1024 * 1024)
  const written = later<void>()
  const { server } = await serveStub(t, {
    handle() {
      written.resolve()
      return { status: 200, headers: ['Content-Length', String(body.length)], body }
    },
  }, { drainTimeoutMs: 2 ** 31 - 1 })
  const socket = connect(server.port, server.host).pause()
  socket.write(get())
  await written.promise
  const drained = server.close()
  let bytes = 0
  socket.on('data', (chunk) => bytes += chunk.length).resume()
  await Promise.all([drained, once(socket, 'close')])
  t.ok(bytes > body.length)
})

t.test('a client that disconnects before or during its response affects no other', async (t) => {
  const body = Buffer.alloc(16 * 1024 * 1024)
  const large: HttpResponse = { status: 200, headers: ['Content-Length', String(body.length)], body }
  for (const way of ['destroy', 'reset', 'end'] as const) {
    const received = later<void>()
    const slow = later<HttpResponse>()
    const { open } = await serveStub(t, {
      handle({ target }) {
        if (target !== '/slow') return json(200, {})
        received.resolve()
        return slow.promise
      },
    })
    const leaving = await open()
    // Another request waits for the first.
    leaving.write(get('/slow') + get('/other'))
    await received.promise
    leaving[way]()
    await leaving.flushed()
    slow.resolve(way === 'end' ? json(200, {}) : large)
    if (way === 'end') {
      t.equal((await leaving.answer()).status, 200, 'a client that closes its half gets its responses')
      t.equal((await leaving.answer()).status, 200)
      t.equal(await leaving.ended(), '')
    }
    const staying = await open()
    staying.write(get('/other'))
    t.equal((await staying.answer()).status, 200, way)
  }
})

t.test('clients that are too slow are disconnected', async (t) => {
  const { open } = await serveStub(t, { handle: echo }, { headersTimeoutMs: 60, requestTimeoutMs: 120 })
  for (
    const [name, bytes] of [
      ['no data', ''],
      ['headers', get().slice(0, -2)],
      ['a body that the service reads', post('Content-Length: 3') + 'a'],
      ['chunks', `${post('Transfer-Encoding: chunked')}1\r\na`],
    ] as const
  ) {
    const connection = await open()
    connection.write(bytes)
    const { status, headers, body } = await connection.answer()
    t.strictSame(
      [status, body, headers.get('connection')],
      [408, '{"code":"request_timeout"}', 'close'],
      name,
    )
    t.equal(await connection.ended(), '')
  }

  const unread = await serveStub(t, { handle: () => refuse('key_missing') }, { requestTimeoutMs: 500 })
  const answered = await unread.open()
  answered.write(post('Content-Length: 3') + 'a')
  t.equal((await answered.answer()).status, 401)
  t.equal(await answered.ended(), '', 'a body that nothing reads gets no second response')
})

t.test('a connection that is new when the delay ends may still send its request', async (t) => {
  const { open, server } = await serveStub(t, {}, { drainTimeoutMs: 10_000 })
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const delay = later<void>()
  let isDrained = false
  const drained = server.close(delay.promise).then(() => isDrained = true)
  const connection = await open()
  delay.resolve()
  const untilRefused = async (): Promise<never> => {
    while (true) {
      mock.timers.tick(1)
      await open().then((other) => other.destroy())
    }
  }
  await t.rejects(untilRefused(), { code: /^ECONN(?:REFUSED|RESET)$/ })
  mock.timers.tick(50)
  connection.write(get())
  const { status, headers } = await connection.answer()
  t.same([status, headers.get('connection')], [200, 'close'])
  connection.destroy()
  while (!isDrained) {
    mock.timers.tick(50)
    await new Promise((resolve) => setImmediate(resolve))
  }
  mock.timers.reset()
  await drained
})

t.test('the last response of a connection, while the server drains, closes it', async (t) => {
  const all = later<void>()
  const slow: ((response: HttpResponse) => void)[] = []
  const { server, open } = await serveStub(t, {
    handle: ({ target }) =>
      target !== '/slow' ? json(200, {}) : new Promise((resolve) => {
        if (slow.push(resolve) === 2) all.resolve()
      }),
  }, { drainTimeoutMs: 10_000 })
  const fresh = await open()
  const half = await open()
  half.write(get().slice(0, -2))
  await half.flushed()
  const busy = await open()
  busy.write(get('/slow') + get('/slow'))
  await all.promise
  const drained = server.close()
  t.equal(await fresh.ended(), '')
  half.write('\r\n')
  t.equal((await half.answer()).headers.get('connection'), 'close')
  t.equal(await half.ended(), '')
  for (const respond of slow) respond(json(200, {}))
  for (const connection of ['keep-alive', 'close']) {
    t.equal((await busy.answer()).headers.get('connection'), connection)
  }
  for (const connection of [fresh, half, busy]) connection.end()
  await drained
})

t.test('a request that is on its way when the drain begins gets its response', async (t) => {
  const { open, server } = await serveStub(t, {}, { drainTimeoutMs: 10_000 })
  const connection = await open()
  connection.write(get())
  t.equal((await connection.answer()).headers.get('connection'), 'keep-alive')
  mock.timers.enable({ apis: ['setInterval'] })
  connection.write(get())
  const drained = server.close()
  const { status, headers } = await connection.answer()
  t.same([status, headers.get('connection')], [200, 'close'])
  mock.timers.reset()
  await drained
})

t.test('connections beyond the limit are refused, logged once, and accepted again later', async (t) => {
  const refusing: number[] = []
  const { open } = await serveStub(t, { connectionsRefused: (limit) => void refusing.push(limit) }, {
    maxConnections: 3,
  })
  const health = async (connection: RawConnection) => {
    connection.write(get())
    return (await connection.answer()).status
  }
  for (const episode of [1, 2]) {
    const all = await Promise.all([open(), open(), open()])
    for (const connection of all) t.equal(await health(connection), 200)
    for (let i = 0; i < 3; i++) await t.rejects(open().then(health), 'refused')
    t.same(refusing, Array(episode).fill(3))
    for (const connection of all) connection.destroy()
    // No event says when the server has noticed.
    for (let accepts = false; !accepts;) {
      const again = await open().catch(() => undefined)
      accepts = again !== undefined && await health(again).catch(() => 0) === 200
      again?.end()
      await again?.ended().catch(() => '')
    }
  }
})

t.test('an idle connection keeps no request', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  let last: WeakRef<object> | undefined
  const { open } = await serveStub(t, {
    handle(request) {
      last = new WeakRef((request as NodeHttpRequest).request)
      return echo(request)
    },
  })
  const connection = await open()
  connection.write(`${post('Content-Length: 2')}{}`)
  t.equal((await connection.answer()).status, 200)
  // No event says when Node has let go of it.
  for (let turns = 0; turns < 100 && last?.deref() !== undefined; turns++) {
    mock.timers.tick(1_000)
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
  }
  t.equal(last?.deref(), undefined)
})

import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import type { HttpResponse } from '../../core/http/message.ts'
import type { RawConnection } from '../support/raw-connection.ts'
import { authorization, get, json, later, post, refuse, served } from './node-stub.ts'

t.test('a client that is slow to take its answer', async (t) => {
  const body = Buffer.alloc(64 * 1024 * 1024)
  for (const writeTimeoutMs of [50, 60_000]) {
    const written = later<void>()
    const { server } = await served({
      handle() {
        written.resolve()
        return { status: 200, headers: ['Content-Length', String(body.length)], body }
      },
    }, { writeTimeoutMs, drainTimeoutMs: 2 ** 31 - 1 })
    const socket = connect(server.port, server.host).pause()
    socket.on('error', () => {})
    socket.write(get())
    await written.promise
    const drained = server.drain()
    if (writeTimeoutMs === 50) {
      await drained
      t.ok(socket.bytesRead < body.length, 'is cut off when it takes nothing')
    } else {
      let bytes = 0
      socket.on('data', (chunk) => bytes += chunk.length).resume()
      await Promise.all([drained, once(socket, 'close')])
      t.ok(bytes > body.length, 'gets all of it, even from a server that drains')
    }
    socket.destroy()
  }
})

t.test('a client that goes away in the middle of its body', async (t) => {
  for (const way of ['destroy', 'reset', 'end'] as const) {
    const begun = later<void>()
    const failure = later<unknown>()
    const { server, open } = await served({
      handle(exchange) {
        const body = Promise.resolve(exchange.body(100))
        body.catch(failure.resolve)
        begun.resolve()
        return body.then(() => json(200, {}), () => refuse('malformed_request'))
      },
    })
    const connection = await open()
    connection.write(post('Content-Length: 10') + 'abc')
    await begun.promise
    connection[way]()
    t.match(await failure.promise, { name: 'Problem', code: 'malformed_request' }, way)
    if (way === 'end') t.equal((await connection.answer()).status, 400, 'which may still be listening')
    connection.destroy()
    const other = await open()
    other.write(get('/', 'Content-Length: 0'))
    t.equal((await other.answer()).status, 200, 'others are served')
    other.destroy()
    await server.drain()
  }
})

t.test('a body that is asked for after its client has gone', async (t) => {
  const gone = later<void>()
  const failure = later<unknown>()
  const { server, open } = await served({
    async handle(exchange) {
      await gone.promise
      try {
        await exchange.body(100)
      } catch (error) {
        failure.resolve(error)
      }
      return json(200, {})
    },
  })
  const connection = await open()
  connection.write(post('Content-Length: 10') + 'abc')
  await connection.flushed()
  connection.reset()
  await connection.flushed()
  gone.resolve()
  t.match(await failure.promise, { name: 'Problem', code: 'malformed_request' })
  await server.drain()
})

t.test('a client that closes its half gets its answer', async (t) => {
  const asked = later<void>()
  const answer = later<HttpResponse>()
  const { server, open } = await served({
    handle() {
      asked.resolve()
      return answer.promise
    },
  })
  const connection = await open()
  connection.write(get())
  connection.end()
  await asked.promise
  await connection.flushed()
  answer.resolve(json(200, {}))
  t.equal((await connection.answer()).status, 200)
  t.equal(await connection.ended(), '')
  await server.drain()
})

t.test('what is too slow', async (t) => {
  const { server, open } = await served({}, { headersTimeoutMs: 60, requestTimeoutMs: 120 })
  for (
    const [name, bytes] of [
      ['nothing at all', ''],
      ['headers', get().slice(0, -2)],
      ['a body that is waited for', post(authorization, 'Content-Length: 3') + 'a'],
      ['chunks', `${post(authorization, 'Transfer-Encoding: chunked')}1\r\na`],
    ] as const
  ) {
    const connection = await open()
    connection.write(bytes)
    const answer = await connection.answer()
    t.equal(answer.status, 408, name)
    t.equal(JSON.parse(answer.body).code, 'request_timeout')
    t.equal(answer.headers.get('connection'), 'close')
    t.equal(await connection.ended(), '')
    connection.destroy()
  }
  await server.drain()

  const patient = await served({}, { requestTimeoutMs: 2_000 })
  const answered = await patient.open()
  answered.write(post('Content-Length: 3') + 'a')
  t.equal((await answered.answer()).status, 400)
  t.equal(await answered.ended(), '', 'a body that nobody waits for is not answered again')
  answered.destroy()
  await patient.server.drain()
})

t.test('drain lets answers finish, closes idle connections and refuses new ones', async (t) => {
  const asked = later<void>()
  const answer = later<HttpResponse>()
  let closed = 0
  const { server, open } = await served({
    handle({ target }) {
      if (target === '/at-once') return json(200, {})
      asked.resolve()
      return answer.promise
    },
    close() {
      closed++
      return Promise.resolve()
    },
  }, { drainTimeoutMs: 10_000 })
  const fresh = await open()
  const idle = await open()
  idle.write(get('/at-once'))
  t.equal((await idle.answer()).headers.get('connection'), 'keep-alive')
  const half = await open()
  half.write(get('/at-once').slice(0, -2))
  const busy = await open()
  busy.write(get('/'))
  await asked.promise
  await half.flushed()

  const drained = server.drain()
  t.equal(server.drain(), drained, 'once')
  t.equal(await idle.ended(), '')
  t.equal(await fresh.ended(), '')
  await t.rejects(open(), { code: 'ECONNREFUSED' })
  half.write('\r\n')
  t.equal((await half.answer()).headers.get('connection'), 'close')
  t.equal(closed, 0)
  answer.resolve(json(200, {}))
  const last = await busy.answer()
  t.equal(last.status, 200)
  t.equal(last.headers.get('connection'), 'close')
  for (const connection of [idle, fresh, half, busy]) connection.end()
  await drained
  t.equal(closed, 1)
})

t.test('connections beyond the limit are refused, logged once, and accepted again later', async (t) => {
  const refusing: number[] = []
  const { server, open } = await served({ connectionsRefused: (limit) => void refusing.push(limit) }, {
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
    // Nothing tells when the server has noticed.
    for (let accepts = false; !accepts;) {
      const again = await open().catch(() => undefined)
      accepts = again !== undefined && await health(again).catch(() => 0) === 200
      again?.end()
      await again?.ended().catch(() => '')
    }
  }
  await server.drain()
})

t.test('drain cuts off what does not finish', async (t) => {
  const asked = later<void>()
  const { server, open } = await served({
    handle() {
      asked.resolve()
      return new Promise(() => {})
    },
  }, { drainTimeoutMs: 50 })
  const connection = await open()
  connection.write(get())
  await asked.promise
  await server.drain()
  t.equal(await connection.ended().catch(() => ''), '')
  connection.destroy()
})

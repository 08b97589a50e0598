import t from 'tap'
import { serve, type ServeOptions } from '../../adapters/runtimes/node.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { framingContract } from '../contract/http/framing.ts'
import { authorization, get, json, key, later, post, refuse, served, stub } from './node-stub.ts'

t.test('framing', async (t) => {
  const { server } = await served()
  await framingContract(t, { host: server.host, port: server.port, key, partner: 'demo' })
  await server.drain()
})

t.test('framing, of the service itself', async (t) => {
  const store = createMemoryStore()
  await createPartnerAdministration(store, { actor: 'operator' }).create({
    slug: 'demo',
    name: 'Demo',
    modules: [],
  })
  const issued = await createKeyAdministration(store, { actor: 'operator' }).issue({
    partner: 'demo',
    name: 'Test',
    environment: 'live',
  })
  const api = createPartnerApi({ store }, { limits: { verify: { quota: 0, windowSeconds: 60 } } })
  const server = await serve(api, { port: 0 })
  const { host, port } = server
  await framingContract(t, { host, port, key: issued.text, partner: 'demo' })
  await server.drain()
})

t.test('a request reaches core as it was sent', async (t) => {
  const seen = later<HttpRequest>()
  const { server, open } = await served({
    handle(exchange) {
      seen.resolve(exchange)
      return json(200, {})
    },
  })
  const connection = await open()
  connection.write(get('/a%2Fb?c=d&c', 'X-A: b', 'Authorization: c', 'x-a: d', 'authorization: e'))
  await connection.answer()
  const exchange = await seen.promise
  t.equal(exchange.method, 'GET')
  t.equal(exchange.target, '/a%2Fb?c=d&c')
  t.equal(exchange.header('x-a'), 'b, d')
  t.equal(exchange.header('authorization'), 'c, e')
  t.equal(exchange.header('x-b'), undefined)
  t.equal((await exchange.body(1)).length, 0, 'a request without a body has an empty one')
  connection.destroy()
  await server.drain()
  t.equal(exchange.address, '127.0.0.1', 'still known when the client has gone')
})

t.test('answers without a body', async (t) => {
  const { server, open } = await served({
    handle: ({ target, method }) =>
      method === 'HEAD'
        ? json(200, {}, false)
        : { status: Number(target.slice(1)), headers: ['ETag', '"a"'], body: undefined },
  })
  const connection = await open()
  for (const status of [204, 304]) {
    connection.write(get(`/${status}`))
    const answer = await connection.answer()
    t.equal(answer.status, status)
    t.equal(answer.headers.get('etag'), '"a"')
    t.notOk(answer.headers.has('content-length') || answer.headers.has('transfer-encoding'))
  }
  connection.write(get().replace('GET', 'HEAD'))
  const answer = await connection.answer(true)
  t.match(answer.headers.get('content-length'), /^[1-9]/)
  connection.write(get('/204'))
  t.equal((await connection.answer()).status, 204, 'nothing came between')
  connection.destroy()
  await server.drain()
})

t.test('answers keep the order of their requests', async (t) => {
  const answers = new Map<string, (answer: HttpResponse) => void>()
  const all = later<void>()
  const { server, open } = await served({
    handle: ({ target }) =>
      target === '/at-once' ? json(200, { target }) : new Promise((resolve) => {
        answers.set(target, resolve)
        if (answers.size === 2) all.resolve()
      }),
  })
  const connection = await open()
  connection.write(`${get('/1')}${get('/2')}${get('/at-once')}no request\r\n\r\n`)
  await all.promise
  for (const target of ['/2', '/1']) answers.get(target)?.(json(200, { target }))
  for (const target of ['/1', '/2', '/at-once']) {
    t.equal(JSON.parse((await connection.answer()).body).target, target)
  }
  t.equal((await connection.answer()).status, 400, 'the error waits for its turn')
  t.equal(await connection.ended(), '')
  connection.destroy()
  await server.drain()
})

t.test('an error waits for all answers before it', async (t) => {
  const { server, open } = await served({ handle: ({ target }) => json(200, { target }) })
  for (const end of ['no request\r\n\r\n', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', get('/4', 'Host: b')]) {
    const connection = await open()
    connection.write(get('/1') + get('/2') + get('/3') + end)
    for (const target of ['/1', '/2', '/3']) {
      t.equal(JSON.parse((await connection.answer()).body).target, target, end)
    }
    t.equal((await connection.answer()).status, 400)
    t.equal(await connection.ended(), '')
    connection.destroy()
  }
  await server.drain()
})

t.test('nothing is processed behind the last answer', async (t) => {
  let handled = 0
  const { server, open } = await served({
    handle() {
      handled++
      return json(200, {})
    },
  })
  const connection = await open()
  connection.write(`GET / HTTP/1.1\r\n\r\n${get()}${get()}no request`)
  const answer = await connection.answer()
  t.equal(answer.status, 400)
  t.equal(answer.headers.get('connection'), 'close')
  t.equal(await connection.ended(), '')
  connection.write(get())
  await connection.flushed()
  t.equal(handled, 0)
  connection.destroy()
  await server.drain()
})

t.test('an error in a request waits for the answers before it', async (t) => {
  for (
    const [name, bytes, status] of [
      ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['chunks', `${post('Transfer-Encoding: chunked')}zz\r\n`, 401],
    ] as const
  ) {
    const asked = later<void>()
    const answer = later<HttpResponse>()
    const { server, open } = await served({
      handle({ target }) {
        if (target !== '/') return refuse('key_missing')
        asked.resolve()
        return answer.promise
      },
    })
    const connection = await open()
    connection.write(get('/') + bytes)
    await asked.promise
    await connection.flushed()
    answer.resolve(json(200, {}))
    t.equal((await connection.answer()).status, 200, name)
    t.equal((await connection.answer()).status, status)
    t.equal(await connection.ended(), '')
    connection.destroy()
    await server.drain()
  }
})

t.test('an answer before the body', async (t) => {
  const { server, open } = await served({ handle: () => refuse('key_missing') })
  const keeping = await open()
  keeping.write(post('Content-Length: 20000') + 'a'.repeat(100))
  t.equal((await keeping.answer()).status, 401)
  keeping.write('a'.repeat(19_900) + get())
  t.equal((await keeping.answer()).status, 401, 'the rest of a small body is passed over')
  keeping.destroy()

  const large = await open()
  large.write(post('Content-Length: 20000000') + 'a'.repeat(100))
  const answer = await large.answer()
  t.equal(answer.status, 401)
  t.equal(answer.headers.get('connection'), 'close')
  t.equal(await large.ended(), '')
  large.write('a'.repeat(10_000_000))
  await large.flushed()
  t.equal(await large.ended(), '', 'is not reset while the client sends on')
  large.destroy()

  const closing = await open()
  closing.write(post('Content-Length: 20000', 'Connection: close') + 'a'.repeat(100))
  t.equal((await closing.answer()).status, 401)
  t.equal(await closing.ended(), '')
  closing.write('a'.repeat(19_900))
  await closing.flushed()
  t.equal(await closing.ended(), '', 'nor where the client wants the connection closed')
  closing.destroy()
  await server.drain()
})

t.test('a client gets 100 Continue only when the service reads its body', async (t) => {
  const { server, open } = await served()
  const expectation = 'Expect: 100-continue'
  const wanted = await open()
  wanted.write(post(authorization, 'Content-Length: 2', expectation))
  t.equal((await wanted.answer()).status, 100)
  wanted.write('{}')
  t.equal((await wanted.answer()).status, 200)
  wanted.destroy()
  for (
    const [fields, status] of [
      [['Content-Length: 2'], 400],
      [[authorization, 'Content-Length: 50000'], 413],
    ] as const
  ) {
    const unwanted = await open()
    unwanted.write(post(...fields, expectation))
    const answer = await unwanted.answer()
    t.equal(answer.status, status)
    t.equal(answer.headers.get('connection'), 'close')
    t.equal(await unwanted.ended(), '')
    unwanted.destroy()
  }
  await server.drain()
})

t.test('a header that must not be sent', async (t) => {
  const { server, open } = await served({
    handle: () => ({ status: 200, headers: ['Link', '</a\r\nb>'], body: undefined }),
  })
  const connection = await open()
  for (let i = 0; i < 2; i++) {
    connection.write(get())
    const answer = await connection.answer()
    t.equal(answer.status, 500)
    t.equal(JSON.parse(answer.body).code, 'internal')
  }
  connection.destroy()
  await server.drain()
})

t.test('many clients at once', async (t) => {
  const { server } = await served({
    handle: ({ target }) =>
      target.length % 2 === 0 ? json(200, { target }) : Promise.resolve(json(200, { target })),
  })
  const targets = Array.from({ length: 1000 }, (_, i) => `/${i}`)
  const answers = await Promise.all(targets.map(async (target) => {
    const answer = await fetch(server.url + target)
    return (await answer.json() as { target: string }).target
  }))
  t.same(answers, targets)
  await server.drain()
})

t.test('settings out of their range are named, and nothing listens', async (t) => {
  const wrong: readonly (readonly [keyof ServeOptions, unknown])[] = [
    ['port', 65_536],
    // Node listens on a socket of this name.
    ['port', 'abc'],
    ['requestTimeoutMs', -1],
    // Node waits for a millisecond instead.
    ['requestTimeoutMs', 2 ** 31],
    ['headersTimeoutMs', 2 ** 31],
    ['keepAliveTimeoutMs', 2 ** 31 - 1],
    ['drainTimeoutMs', NaN],
    ['maxConnections', 0],
  ]
  for (const [name, value] of wrong) {
    const message = new RegExp(
      `^${name} must be an integer (?:from 0 to \\d+|of 1 or more), and ${value} is not\\.$`,
    )
    await t.rejects(serve(stub, { [name]: value }), { name: 'RangeError', message })
  }
})

t.test('addresses', async (t) => {
  const { server } = await served()
  await t.rejects(serve(stub, { port: server.port }), {
    message: `Cannot listen on 127.0.0.1:${server.port}: the address is in use`,
    cause: { code: 'EADDRINUSE' },
  })
  await server.drain()
  const six = await serve(stub, { host: '::1', port: 0 })
  t.equal(six.url, `http://[::1]:${six.port}`)
  t.equal((await fetch(`${six.url}/service/health`)).status, 200)
  await six.drain()
})

import t from 'tap'
import { type Mounted, serve, type ServeOptions } from '../adapters/runtimes/node.ts'
import { createMemoryStore } from '../adapters/stores/memory/store.ts'
import { createKeyAdministration } from '../core/admin/keys.ts'
import { createPartnerAdministration } from '../core/admin/partners.ts'
import { createPartnerApi } from '../core/api.ts'
import type { Answer, Exchange } from '../core/http/exchange.ts'
import { Problem, type ProblemCode, PROBLEMS } from '../core/http/problem.ts'
import type { MaybePromise } from '../core/ports.ts'
import { framingContract } from './contract/framing.ts'
import { connectRaw } from './contract/raw-connection.ts'

const key = 'spk_test_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'

function json(status: number, value: object, withBody = true): Answer {
  const body = Buffer.from(JSON.stringify({ ...value, request_id: 'req_1' }))
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  return {
    status,
    headers: ['Content-Type', type, 'Content-Length', String(body.length), 'X-Request-Id', 'req_1'],
    body: withBody ? body : undefined,
  }
}

const refuse = (code: ProblemCode): Answer => json(PROBLEMS[code].status, { code })

/** Just enough of the service for an adapter to be tried on. */
function handle(exchange: Exchange): MaybePromise<Answer> {
  const [path, query] = exchange.target.split('?')
  if (path === '/service/health') {
    return query === undefined ? json(200, {}, exchange.method !== 'HEAD') : refuse('invalid_parameter')
  }
  if (path !== '/service/developer/verify-key') return refuse('route_not_found')
  const credentials = [exchange.header('authorization'), exchange.header('x-service-partner-key')]
  if (credentials[0] !== `Bearer ${key}` || credentials[1] !== undefined) {
    return refuse('ambiguous_credentials')
  }
  return readBody(exchange)
}

async function readBody(exchange: Exchange): Promise<Answer> {
  try {
    const body = await exchange.body(32_768)
    return json(200, JSON.parse(Buffer.from(body).toString()))
  } catch (error) {
    return refuse(error instanceof Problem ? error.code : 'malformed_request')
  }
}

const stub: Mounted = { handle, refuse, close: async () => {} }

/** Serves a stub that answers in its own way. */
async function served(own: Partial<Mounted> = {}, options: ServeOptions = {}) {
  const server = await serve({ ...stub, ...own }, { port: 0, drainTimeoutMs: 200, ...options })
  return { server, open: () => connectRaw(server.host, server.port) }
}

const get = (path = '/service/health', ...fields: string[]) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`
const post = (...fields: string[]) => get('/service/developer/verify-key', ...fields).replace('GET', 'POST')
const authorization = `Authorization: Bearer ${key}`

/** A promise and what settles it. */
const later = <T>() => Promise.withResolvers<T>()

t.test('framing', async (t) => {
  const { server } = await served()
  await framingContract(t, { host: server.host, port: server.port, key, partner: 'demo' })
  await server.drain()
})

t.test('framing, of the service itself', async (t) => {
  const store = createMemoryStore()
  await createPartnerAdministration(store).create({ slug: 'demo', name: 'Demo', modules: [] })
  const issued = await createKeyAdministration(store).issue({
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
  const seen = later<Exchange>()
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
  const answers = new Map<string, (answer: Answer) => void>()
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

t.test('nothing is processed behind the last answer', async (t) => {
  let handled = 0
  const { server, open } = await served({
    handle() {
      handled++
      return json(200, {})
    },
  })
  const connection = await open()
  connection.write(`GET / HTTP/1.1\r\n\r\n${get()}${get()}`)
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

t.test('a client is told to continue only when its body is wanted', async (t) => {
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
  const answer = later<Answer>()
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
  const answered = await open()
  answered.write(post('Content-Length: 3') + 'a')
  t.equal((await answered.answer()).status, 400)
  t.equal(await answered.ended(), '', 'a body that nobody waits for is not answered again')
  answered.destroy()
  await server.drain()
})

t.test('drain lets answers finish, closes idle connections and refuses new ones', async (t) => {
  const asked = later<void>()
  const answer = later<Answer>()
  let closed = 0
  const { server, open } = await served({
    handle({ target }) {
      if (target === '/at-once') return json(200, {})
      asked.resolve()
      return answer.promise
    },
    async close() {
      closed++
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

t.test('addresses', async (t) => {
  const { server } = await served()
  await t.rejects(serve(stub, { port: server.port }), {
    message: `Cannot listen on 127.0.0.1:${server.port}: the address is in use`,
    cause: { code: 'EADDRINUSE' },
  })
  await t.rejects(serve(stub, { port: 65_536 }), RangeError)
  await t.rejects(serve(stub, { requestTimeoutMs: -1 }), RangeError)
  await server.drain()
  const six = await serve(stub, { host: '::1', port: 0 })
  t.equal(six.url, `http://[::1]:${six.port}`)
  t.equal((await fetch(`${six.url}/service/health`)).status, 200)
  await six.drain()
})

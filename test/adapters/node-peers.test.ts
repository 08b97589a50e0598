/**
 * What those who bridge Fetch and Node try on their listeners, tried on ours: what passes through unchanged in either
 * direction, and what becomes of it when one side leaves. Framing and order are tried elsewhere.
 */
import t from 'tap'
import type { Test } from 'tap'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { get, json, later, post, served } from './node-stub.ts'

/** Serves answers that say what the body of each request was, in hexadecimal digits. */
function echoing(maxBytes = 1_000_000) {
  return served({
    async handle(exchange) {
      const body = await exchange.body(maxBytes)
      return json(200, { hex: Buffer.from(body).toString('hex') })
    },
  })
}

/** Sends a request, and looks at the exchange that it becomes. */
async function exchangeOf(
  t: Test,
  bytes: string | Uint8Array,
  act: (exchange: HttpRequest) => void,
): Promise<void> {
  const { server, open } = await served({
    handle(exchange) {
      act(exchange)
      return json(200, {})
    },
  })
  const connection = await open()
  connection.write(bytes)
  t.equal((await connection.answer()).status, 200)
  connection.destroy()
  await server.drain()
}

/** What a server writes for an answer, byte for byte behind the status line. */
async function written(answer: HttpResponse): Promise<string> {
  const { server, open } = await served({ handle: () => answer })
  const connection = await open()
  connection.write(get('/', 'Connection: close'))
  const text = await connection.ended()
  connection.destroy()
  await server.drain()
  return text
}

t.test('a body that comes byte by byte is whole, letters of several bytes included', async (t) => {
  const { server, open } = await echoing()
  const connection = await open()
  const bytes = Buffer.from('{"name":"Łódź 😀"}')
  for (const chunked of [false, true]) {
    connection.write(post(chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes.length}`))
    for (const byte of bytes) {
      const one = Uint8Array.of(byte)
      connection.write(chunked ? Buffer.concat([Buffer.from('1\r\n'), one, Buffer.from('\r\n')]) : one)
      await connection.flushed()
    }
    if (chunked) connection.write('0\r\n\r\n')
    t.equal(JSON.parse((await connection.answer()).body).hex, bytes.toString('hex'))
  }
  connection.destroy()
  await server.drain()
})

t.test('a body is bytes, whatever they are', async (t) => {
  const { server, open } = await echoing()
  const connection = await open()
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index * 7 % 256)
  connection.write(post(`Content-Length: ${bytes.length}`))
  connection.write(bytes)
  t.equal(JSON.parse((await connection.answer()).body).hex, Buffer.from(bytes).toString('hex'))
  connection.destroy()
  await server.drain()
})

t.test('bodies of nothing are empty, and the connection goes on', async (t) => {
  const { server, open } = await echoing()
  const connection = await open()
  const requests = [
    post(),
    post('Content-Length: 0'),
    `${post('Transfer-Encoding: chunked')}0\r\n\r\n`,
    get('/', 'Content-Length: 0'),
    get().replace('GET', 'DELETE'),
  ]
  for (const request of requests) {
    connection.write(request)
    const answer = await connection.answer()
    t.equal(answer.status, 200)
    t.equal(JSON.parse(answer.body).hex, '')
  }
  connection.destroy()
  await server.drain()
})

t.test('requests in a row have each its own body, in whatever order they are answered', async (t) => {
  const waiting = new Map<string, () => void>()
  const all = later<void>()
  const { server, open } = await served({
    async handle(exchange) {
      const body = Buffer.from(await exchange.body(100)).toString()
      await new Promise<void>((resolve) => {
        waiting.set(body, resolve)
        if (waiting.size === 3) all.resolve()
      })
      return json(200, { body })
    },
  })
  const connection = await open()
  const bodies = ['one', 'two', 'three']
  connection.write(bodies.map((body) => post(`Content-Length: ${body.length}`) + body).join(''))
  await all.promise
  for (const body of bodies.toReversed()) waiting.get(body)?.()
  for (const body of bodies) t.equal(JSON.parse((await connection.answer()).body).body, body)
  connection.destroy()
  await server.drain()
})

t.test('a target reaches core as it was sent, in origin form', async (t) => {
  const targets = {
    '/a/../b/./c': '/a/../b/./c',
    '//a//b': '//a//b',
    '/%2e%2E/%2F?%zz': '/%2e%2E/%2F?%zz',
    "/a;b=c?d=e?f&'()*[]|": "/a;b=c?d=e?f&'()*[]|",
    'http://other.test:81/a?b': '/a?b',
    'HTTPS://other.test/a#b': '/a#b',
    'http://other.test?b': '/?b',
    'http://user:word@other.test/': '/',
  }
  for (const [sent, target] of Object.entries(targets)) {
    await exchangeOf(t, get(sent), (exchange) => t.equal(exchange.target, target, sent))
  }
})

t.test('every header field is there by its name, and nothing else is', async (t) => {
  const many = Array.from({ length: 900 }, (_, index) => `X-Field-${index}: ${index}`)
  await exchangeOf(t, get('/', ...many), (exchange) => {
    const values = many.map((_, index) => exchange.header(`x-field-${index}`))
    t.same(values, many.map((_, index) => String(index)))
  })
  const repeated = [
    'X-Many: a',
    'x-many:b',
    'X-MANY:   c  ',
    'X-Many:',
    'Accept: text/html',
    'Accept: */*;q=0.1',
  ]
  await exchangeOf(t, get('/', ...repeated, 'If-None-Match: "a"', 'If-None-Match: "b"'), (exchange) => {
    t.equal(exchange.header('x-many'), 'a, b, c, ')
    t.equal(exchange.header('accept'), 'text/html, */*;q=0.1')
    t.equal(exchange.header('if-none-match'), '"a", "b"')
  })
  const bytes = Buffer.from(get('/', 'X-Bytes: caf\xe9'), 'latin1')
  await exchangeOf(t, bytes, (exchange) => {
    t.equal(exchange.header('x-bytes'), 'caf\xe9', 'a character for each byte')
    t.equal(exchange.header('x-nothing'), undefined)
  })
  const trailed = `${post('Transfer-Encoding: chunked', 'Trailer: X-Late')}0\r\nX-Late: a\r\n\r\n`
  await exchangeOf(
    t,
    trailed,
    (exchange) => t.equal(exchange.header('x-late'), undefined, 'trailers are no headers'),
  )
})

t.test('fields of an answer are written as they are: each, in order, repeated ones too', async (t) => {
  const headers = [
    'X-One',
    '1',
    'Set-Cookie',
    'a=b',
    'LINK',
    '</a>; rel="next"',
    'Set-Cookie',
    'c=d',
    'link',
    '</b>',
  ]
  const more = Array.from({ length: 200 }, (_, index) => [`X-Field-${index}`, String(index)]).flat()
  const text = await written({
    status: 200,
    headers: [...headers, ...more, 'Content-Length', '0'],
    body: undefined,
  })
  const lines = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n').slice(1)
  const wanted = [...headers, ...more].flatMap((name, index, all) =>
    index % 2 === 0 ? [`${name}: ${all[index + 1]}`] : []
  )
  t.same(lines.slice(0, wanted.length), wanted)
})

t.test('the body of an answer is written as it is', async (t) => {
  const part = Buffer.from('-- inside --').subarray(3, 9)
  const bodies: readonly (readonly [string, HttpResponse['body'], Uint8Array])[] = [
    ['text', 'plain', Buffer.from('plain')],
    ['text beyond ASCII', 'déjà vu', Buffer.from('déjà vu')],
    ['text beyond Latin-1', 'Łódź 😀', Buffer.from('Łódź 😀')],
    ['bytes', Uint8Array.of(0, 13, 10, 255), Uint8Array.of(0, 13, 10, 255)],
    ['bytes of a larger buffer', part, Buffer.from('inside')],
    ['no bytes', new Uint8Array(), new Uint8Array()],
    ['no text', '', new Uint8Array()],
    ['a megabyte', Buffer.alloc(1_000_000, 'ab'), Buffer.alloc(1_000_000, 'ab')],
  ]
  for (const [name, body, bytes] of bodies) {
    const text = await written({ status: 200, headers: ['Content-Length', String(bytes.length)], body })
    const sent = text.slice(text.indexOf('\r\n\r\n') + 4)
    t.ok(Buffer.from(sent, 'latin1').equals(bytes), name)
  }
})

t.test('a client of HTTP/1.0 keeps its connection on request, and never gets 100 Continue', async (t) => {
  const { server, open } = await echoing()
  const connection = await open()
  const old = (request: string): string => request.replace('HTTP/1.1', 'HTTP/1.0')
  for (const body of ['one', 'two']) {
    connection.write(
      old(post('Connection: keep-alive', 'Expect: 100-continue', `Content-Length: ${body.length}`)) + body,
    )
    const answer = await connection.answer()
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('connection'), 'keep-alive')
    t.equal(JSON.parse(answer.body).hex, Buffer.from(body).toString('hex'))
  }
  connection.write(old(get()))
  t.equal((await connection.answer()).headers.get('connection'), 'close')
  t.equal(await connection.ended(), '')
  connection.destroy()
  await server.drain()
})

t.test('a client that disconnects before its response affects no other', async (t) => {
  for (const way of ['destroy', 'reset'] as const) {
    const asked = later<void>()
    const answer = later<HttpResponse>()
    const { server, open } = await served({
      handle({ target }) {
        if (target === '/other') return json(200, {})
        asked.resolve()
        return answer.promise
      },
    })
    const leaving = await open()
    // Another request waits behind it, and leaves with it.
    leaving.write(get('/slow') + get('/other'))
    await asked.promise
    const staying = await open()
    leaving[way]()
    await leaving.flushed()
    answer.resolve(json(200, { filling: 'x'.repeat(100_000) }))
    staying.write(get('/other'))
    t.equal((await staying.answer()).status, 200, way)
    staying.destroy()
    await server.drain()
  }
})

t.test('nor does one that leaves in the middle of its answer', async (t) => {
  const body = Buffer.alloc(32 * 1024 * 1024)
  const begun = later<void>()
  const { server, open } = await served({
    handle({ target }) {
      if (target === '/other') return json(200, {})
      begun.resolve()
      return { status: 200, headers: ['Content-Length', String(body.length)], body }
    },
  })
  const leaving = await open()
  leaving.write(get('/large'))
  await begun.promise
  leaving.reset()
  const staying = await open()
  staying.write(get('/other'))
  t.equal((await staying.answer()).status, 200)
  staying.destroy()
  await server.drain()
})

t.test('an answer before the end of a body of unknown length is the last of its connection', async (t) => {
  const { server, open } = await served()
  const connection = await open()
  connection.write(`${get('/service/health', 'Transfer-Encoding: chunked')}3\r\nabc\r\n`)
  const answer = await connection.answer()
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('connection'), 'close')
  t.equal(await connection.ended(), '')
  connection.write(`0\r\n\r\n${get()}`)
  await connection.flushed()
  t.equal(await connection.ended(), '', 'what comes later is no request')
  connection.destroy()
  await server.drain()
})

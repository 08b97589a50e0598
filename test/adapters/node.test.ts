/** Conversion between Node's requests and responses and those of the service. */
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createListener, serve, type ServeOptions } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { echo, get, json, post, serveStub } from './node-server.ts'

t.test('a request reaches the service as it was sent', async (t) => {
  const { server, open } = await serveStub(t, {
    async handle(request) {
      latest = request
      return json(200, { length: (await request.body(1)).length })
    },
  })
  let latest!: HttpRequest
  const connection = await open()
  async function send(bytes: string | Uint8Array): Promise<HttpRequest> {
    connection.write(bytes)
    t.equal((await connection.answer()).body, '{"length":0}')
    return latest
  }

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
  for (const [sent, target] of Object.entries(targets)) t.equal((await send(get(sent))).target, target, sent)

  const repeated = await send(get(
    '/',
    'X-Many: a',
    'x-many:b',
    'X-MANY:   c  ',
    'X-Many:',
    'Accept: text/html',
    'Accept: */*;q=0.1',
    'If-None-Match: "a"',
    'If-None-Match: "b"',
    'Authorization: c',
    'authorization: d',
  ))
  const expected = {
    'x-many': 'a, b, c, ',
    accept: 'text/html, */*;q=0.1',
    'if-none-match': '"a", "b"',
    authorization: 'c, d',
    'x-nothing': undefined,
  }
  for (const [name, value] of Object.entries(expected)) t.equal(repeated.header(name), value, name)
  const latin1 = await send(Buffer.from(get('/', 'X-Bytes: caf\xe9'), 'latin1'))
  t.equal(latin1.header('x-bytes'), 'caf\xe9')
  const many = Array.from({ length: 900 }, (_, index) => `X-Field-${index}: ${index}`)
  const request = await send(get('/', ...many))
  t.same(many.map((_, index) => `X-Field-${index}: ${request.header(`x-field-${index}`)}`), many)
  const chunked = post('Transfer-Encoding: chunked', 'Trailer: X-Late')
  const trailed = await send(`${chunked}0\r\nX-Late: a\r\n\r\n`)
  t.strictSame([trailed.method, trailed.header('x-late')], ['POST', undefined], 'trailers are not headers')

  connection.destroy()
  await server.close()
  t.equal(latest.address, '127.0.0.1', 'still known after the client has disconnected')
})

t.test('a body is read unmodified', async (t) => {
  const { open } = await serveStub(t, { handle: echo })
  const connection = await open()
  const nextBody = async () => {
    const { status, body } = await connection.answer()
    t.equal(status, 200)
    return JSON.parse(body).hex
  }
  const text = Buffer.from('{"name":"Łódź 😀"}')
  for (const chunked of [false, true]) {
    connection.write(post(chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${text.length}`))
    for (const byte of text) {
      const one = Uint8Array.of(byte)
      connection.write(chunked ? Buffer.concat([Buffer.from('1\r\n'), one, Buffer.from('\r\n')]) : one)
      await connection.flushed()
    }
    if (chunked) connection.write('0\r\n\r\n')
    t.equal(await nextBody(), text.toString('hex'), 'byte by byte')
  }
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index * 7 % 256)
  connection.write(post(`Content-Length: ${bytes.length}`))
  connection.write(bytes)
  t.equal(await nextBody(), Buffer.from(bytes).toString('hex'))
  const empty = [
    post(),
    post('Content-Length: 0'),
    `${post('Transfer-Encoding: chunked')}0\r\n\r\n`,
    get('/', 'Content-Length: 0'),
    get().replace('GET', 'DELETE'),
  ]
  for (const request of empty) {
    connection.write(request)
    t.equal(await nextBody(), '')
  }
})

t.test('a response is written unmodified', async (t) => {
  let response: HttpResponse
  const { open } = await serveStub(t, { handle: () => response })
  /** What is written after the status line. */
  async function written(next: HttpResponse): Promise<string> {
    response = next
    const connection = await open()
    connection.write(get('/', 'Connection: close'))
    const text = await connection.ended()
    return text.slice(text.indexOf('\r\n') + 2)
  }

  const repeated = ['Set-Cookie', 'a=b', 'LINK', '</a>; rel="next"', 'Set-Cookie', 'c=d', 'link', '</b>']
  const many = Array.from({ length: 200 }, (_, index) => [`X-Field-${index}`, String(index)]).flat()
  const headers = [...repeated, ...many, 'Content-Length', '0']
  const lines = headers.flatMap((name, index) => index % 2 === 0 ? `${name}: ${headers[index + 1]}\r\n` : [])
  const text = await written({ status: 200, headers, body: undefined })
  t.equal(text.slice(0, lines.join('').length), lines.join(''))

  const part = Buffer.from('-- inside --').subarray(3, 9)
  for (
    const body of [
      'plain',
      'déjà vu',
      'Łódź 😀',
      Uint8Array.of(0, 13, 10, 255),
      part,
      new Uint8Array(),
      '',
      Buffer.alloc(1_000_000, 'ab'),
    ]
  ) {
    const bytes = Buffer.from(body as string)
    for (const time of ['first', 'second']) {
      const sent = await written({ status: 200, headers: ['Content-Length', String(bytes.length)], body })
      t.ok(sent.endsWith(`\r\n\r\n${bytes.toString('latin1')}`), `${time} ${bytes.toString('hex', 0, 20)}`)
    }
  }

  const connection = await open()
  for (const [status, method] of [[204, 'GET'], [304, 'GET'], [200, 'HEAD']] as const) {
    response = status === 200 ? json(200, {}, false) : { status, headers: ['ETag', '"a"'], body: undefined }
    connection.write(get().replace('GET', method))
    const answer = await connection.answer(true)
    t.strictSame([answer.status, answer.headers.has('content-length')], [status, method === 'HEAD'])
    t.notOk(answer.headers.has('transfer-encoding'))
  }
})

t.test('a response with an invalid header value is replaced', async (t) => {
  let value: string
  const { open } = await serveStub(t, {
    handle: () => ({ status: 200, headers: ['X-Request-Id', value], body: 'a' }),
    refuse: (code) => json(500, { code }),
  })
  const connection = await open()
  for (value of ['a\r\nb: c', 'a\0', 'Ł', '\x7f']) {
    connection.write(get())
    const { status, headers } = await connection.answer()
    t.strictSame([status, headers.has('x-request-id')], [500, false])
  }
  value = 'a\té'
  connection.write(get('/', 'Connection: close'))
  t.match(await connection.ended(), '\r\nX-Request-Id: a\té\r\n')
})

t.test('options out of range are refused before listening', async (t) => {
  const wrong: readonly (readonly [keyof ServeOptions, unknown])[] = [
    ['port', 65_536],
    ['requestTimeoutMs', -1],
    // Node waits for a millisecond instead.
    ['requestTimeoutMs', 2 ** 31],
    ['headersTimeoutMs', 2 ** 31],
    ['keepAliveTimeoutMs', 2 ** 31 - 1],
    ['drainTimeoutMs', NaN],
    ['maxConnections', 0],
  ]
  const api = createPartnerApi({ store: await openMemoryStore() })
  for (const [name, value] of wrong) {
    const range = '(?:from 0 to \\d+|of 1 or more)'
    const message = new RegExp(`^${name} must be an integer ${range}, and ${value} is not\\.$`)
    await t.rejects(serve(api, { [name]: value }), { name: 'RangeError', message })
  }
  // Node listens on a socket of this name.
  const message = 'serve: port must be a number, not a text.'
  await t.rejects(serve(api, { port: 'abc' as never }), { name: 'TypeError', message })
})

t.test('createListener serves HTTP/2', async (t) => {
  const listener = createListener({
    async handle(request) {
      const { method, target, address } = request
      if (method === 'PUT') return json(500, { error: await rejection(request) })
      const credentials = [request.header('authorization'), request.header('x-service-partner-key')]
      const body = method === 'POST' ? Buffer.from(await request.body(100)).toString() : undefined
      return json(200, { method, target, address, credentials, body }, method !== 'HEAD')
    },
  })
  const server = createServer(async (request, response) => {
    if (request.method === 'PUT') await text(request)
    await listener(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => {
    session.destroy()
    server.close()
  })

  async function send(headers: OutgoingHttpHeaders, body?: string) {
    const stream = session.request({ ':path': '/service/health?x=%2e', ...headers }, { endStream: false })
    let text = ''
    stream.on('data', (chunk) => text += chunk).end(body)
    const [{ ':status': status, 'content-length': length }] = await once(stream, 'response')
    if (!stream.readableEnded) await once(stream, 'end')
    return { status, length: Number(length), json: text === '' ? undefined : JSON.parse(text) }
  }

  const target = '/service/health?x=%2e'
  t.match(await send({ 'x-service-partner-key': ['a', 'b'] }), {
    status: 200,
    json: { method: 'GET', target, address: '127.0.0.1', credentials: [null, 'a, b'] },
  })
  const head = await send({ ':method': 'HEAD', authorization: 'a' })
  t.equal(head.json, undefined)
  t.ok(head.length > 0)
  t.equal((await send({ ':method': 'POST' }, '{"no":"length"}')).json.body, '{"no":"length"}')
  t.equal((await send({ ':method': 'POST' })).json.body, '')
  const { json: { error } } = await send({ ':method': 'PUT' }, '{}')
  t.match(error, /^The body has already been read: /, 'by a body parser')
})

t.test('createListener works with what a host did to the request and the response', async (t) => {
  const body = '{"a":"é"}'
  const bodies: (string | undefined)[] = []
  const listener = createListener({
    async handle(request) {
      bodies.push(await rejection(request) || request.address)
      return json(200, { key: request.header('x-service-partner-key') })
    },
  })
  const hosts: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>> = {
    // Like `on-headers` before 1.1, with which `compression` and `express-session` add headers.
    onHeaders(_, response) {
      const { writeHead } = response
      response.writeHead = (status: number, ...[pairs]: unknown[]) => {
        for (const [name, value] of pairs as [string, string][] ?? []) response.setHeader(name, value)
        return writeHead.call(response, status)
      }
    },
    decoded: (request) => void request.setEncoding('utf8'),
    begun: (_, response) => void response.write('begun'),
    serverless: ({ headers }, response) => {
      const request = Object.assign(Readable.from([Buffer.from(body)]), { method: 'POST', url: '/', headers })
      listener(request, response)
    },
  }
  const server = createHttpServer((request, response) => {
    const host = String(request.url).slice(1)
    hosts[host]!(request, response)
    if (host !== 'serverless') {
      listener(request, response).catch((error) => response.end(error.message))
    }
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (const host of Object.keys(hosts)) {
    const headers = { 'x-service-partner-key': 'a' }
    const response = await fetch(`http://127.0.0.1:${port}/${host}`, { method: 'POST', headers, body })
    t.equal(response.status, 200, host)
    t.equal(response.headers.get('content-type'), host === 'begun' ? null : 'application/json', host)
    t.match(await response.text(), host === 'begun' ? 'begunThe response has begun: ' : '{"key":"a"}', host)
  }
  t.match(bodies, [/127/, /^The body is decoded: /, undefined])
})

async function rejection(request: HttpRequest): Promise<string> {
  try {
    await request.body(100)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

/** What core reads of a `Request`, also of one that only a server or another runtime can make. */
import t from 'tap'
import { createResponseConverter, FetchRequest, type PeerInfo } from '../../core/http/fetch.ts'
import type { WebRequest } from '../../core/lib/web-globals.ts'

const encoder = new TextEncoder()

/** A request as a server makes it: the constructor of `Request` checks its URL and drops some of its headers. */
function requestOf(more: object = {}, headers: Record<string, string> = {}, info?: PeerInfo): FetchRequest {
  const request = {
    method: 'POST',
    url: 'http://a.example/',
    headers: new Headers(headers),
    body: null,
    ...more,
  }
  return new FetchRequest(request as unknown as WebRequest, info)
}

function streamOf(...chunks: readonly string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk))
      controller.close()
    },
  })
}

const declared = { 'content-length': '2' }
const early = { code: 'malformed_request', members: { detail: 'The body ended early.' } }
const taken = { message: /^The body has already been read/ }
const bodyOf = async (request: FetchRequest, maxBytes = 4) =>
  new TextDecoder().decode(await request.body(maxBytes))

t.test('the target is the path and the query of the URL', (t) => {
  const targets: Record<string, string> = {
    'http://a.example/b/c?d=//e#f?g': '/b/c?d=//e',
    'http://a.example?b=/c': '/?b=/c',
    'http://a.example': '/',
    'http://a.example#b': '/',
    'http://a.example#/b': '/',
    'https://a.example/b': '/b',
    'http:///b': '/b',
    '/b?c=http://d/e': '/b?c=http://d/e',
    '#b': '/',
  }
  for (const [url, target] of Object.entries(targets)) t.equal(requestOf({ url }).target, target, url)
  t.end()
})

t.test('a request with an invalid Host or an ambiguous end is malformed', (t) => {
  const valid = [
    {},
    ...['', 'a.example:80', '[::1]:80', "A-Z_~!$&'()*+,;=", '192.0.2.1'].map((host) => ({ host })),
    ...['0', '10'].map((length) => ({ 'content-length': length })),
    ...['chunked', 'Chunked'].map((coding) => ({ 'transfer-encoding': coding })),
  ] as Record<string, string>[]
  const invalid = [
    ...['a/b', 'a?b', 'a#b', 'a@b', 'a b', 'a"b', 'a\\b', 'a^b', 'a{b', 'é'].map((host) => ({ host })),
    ...['2, 2', '+2', '2x', 'x2', '-2'].map((length) => ({ 'content-length': length })),
    ...['gzip, chunked', 'chunked, gzip', 'gzip', 'chunked, chunked'].map((coding) => ({
      'transfer-encoding': coding,
    })),
    { 'content-length': '2x', host: 'a/b' },
  ] as Record<string, string>[]
  for (const headers of valid) t.equal(requestOf({}, headers).target, '/', JSON.stringify(headers))
  for (const headers of invalid) t.equal(requestOf({}, headers).target, '%', JSON.stringify(headers))
  t.end()
})

t.test('the address is that of the peer, if the runtime reports it', (t) => {
  const remoteAddr = { hostname: '192.0.2.1' }
  t.equal(requestOf({}, {}, { remoteAddr }).address, '192.0.2.1')
  for (const info of [undefined, {}, { remoteAddr: {} }]) t.equal(requestOf({}, {}, info).address, undefined)
  t.equal(requestOf({}, { a: '1' }).header('a'), '1')
  t.equal(requestOf().header('a'), undefined)
  t.end()
})

t.test('a small declared body is there when the request is handled', async (t) => {
  const ready = requestOf({ arrayBuffer: () => Promise.resolve(encoder.encode('ab').buffer) }, declared)
  t.equal(ready.hasSmallBody, true)
  const read = await ready.arrive((request) => request.body(2))
  t.same(read, encoder.encode('ab'))
  const ended = requestOf({ arrayBuffer: () => Promise.reject(new Error()), bodyUsed: false }, declared)
  await t.rejects(ended.arrive(async (request) => await request.body(4)), early)
  const late = requestOf({ arrayBuffer: () => new Promise(() => {}) }, declared)
  const handled = late.arrive(async (request) => await request.body(4))
  late.fail('request_timeout')
  await t.rejects(handled, { code: 'request_timeout' })
  const others: readonly (readonly [object, Record<string, string>])[] = [
    [{ method: 'GET' }, declared],
    [{ bodyUsed: true }, declared],
    ...['', '0', '16385', '2x'].map((length) => [{}, { 'content-length': length }] as const),
    [{}, {}],
  ]
  for (const [more, headers] of others) t.equal(requestOf(more, headers).hasSmallBody, false)
})

t.test('a body of unknown length is read up to the limit', async (t) => {
  t.equal(await bodyOf(requestOf()), '')
  t.equal(await bodyOf(requestOf({ body: streamOf('a', 'bc', 'd') })), 'abcd')
  await t.rejects(bodyOf(requestOf({ body: streamOf('ab', 'cde') })), { code: 'body_too_large' })
  let isCancelled = false
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(encoder.encode('abc')),
    cancel: () => void (isCancelled = true),
  })
  await t.rejects(bodyOf(requestOf({ body: endless })), { code: 'body_too_large' })
  t.ok(isCancelled)
})

t.test('a body of a declared length is read at once, if that is within the limit', async (t) => {
  const arrayBuffer = (text: string) => () => Promise.resolve(encoder.encode(text).buffer)
  t.equal(await bodyOf(requestOf({ arrayBuffer: arrayBuffer('ab') }, declared)), 'ab')
  await t.rejects(bodyOf(requestOf({ arrayBuffer: arrayBuffer('abcde') }, declared)), {
    code: 'body_too_large',
  })
  const fail = () => t.fail('the body is read')
  const long = requestOf({ body: streamOf('ab'), arrayBuffer: fail }, { 'content-length': '5' })
  t.throws(() => long.body(4), { code: 'body_too_large' })
  t.equal(await bodyOf(requestOf({ arrayBuffer: arrayBuffer('abcd') }, { 'content-length': '4' })), 'abcd')
})

t.test('a body that ends early is malformed, and one that the host has read is its error', async (t) => {
  const fail = (error: Error) => () => Promise.reject(error)
  const failing = new ReadableStream({ start: (controller) => controller.error(new Error('reset')) })
  await t.rejects(bodyOf(requestOf({ body: failing })), early)
  await t.rejects(
    bodyOf(requestOf({ arrayBuffer: fail(new Error('reset')), bodyUsed: false }, declared)),
    early,
  )
  await t.rejects(
    bodyOf(requestOf({ arrayBuffer: fail(new TypeError('reset')), bodyUsed: true }, declared)),
    taken,
  )
  await t.rejects(
    bodyOf(requestOf({ arrayBuffer: fail(new TypeError('locked')), bodyUsed: false }, declared)),
    taken,
  )
  const reading = {
    bodyUsed: false,
    arrayBuffer: () => (reading.bodyUsed = true, fail(new TypeError('reset'))()),
  }
  await t.rejects(bodyOf(Object.assign(requestOf({}, declared), { request: reading })), early)
  const locked = streamOf('a')
  locked.getReader()
  await t.rejects(bodyOf(requestOf({ body: locked })), taken)
})

t.test('a request that is stopped fails the reading of its body, now or later', async (t) => {
  const never = () => new Promise(() => undefined)
  const timeout = { code: 'request_timeout' }
  const open = () => new ReadableStream()
  for (const [more, headers] of [[{ body: open() }, {}], [{ arrayBuffer: never }, declared]] as const) {
    const request = requestOf(more, headers)
    const body = bodyOf(request)
    request.fail('request_timeout')
    request.fail('internal')
    await t.rejects(body, timeout)
  }
  const stopped = requestOf({ body: open() })
  stopped.fail('request_timeout')
  t.throws(() => stopped.body(4), timeout)
  let fail = (_: Error): void => undefined
  const body = new ReadableStream({
    start: (controller) => void (fail = (error) => controller.error(error)),
    cancel: () => Promise.reject(new Error('reset')),
  })
  const request = requestOf({ body })
  const read = bodyOf(request)
  fail(new Error('reset'))
  request.fail('request_timeout')
  await t.rejects(read, timeout)
})

t.test('after a request that timed out the connection is closed', (t) => {
  const respond = createResponseConverter(() => ({ status: 500, headers: [], body: undefined }))
  const connection = (status: number) =>
    respond({ status, headers: ['A', '1'], body: undefined }).headers.get('connection')
  t.equal(connection(408), 'close')
  t.equal(connection(400), null)
  t.end()
})

/** The servers of the runtimes beyond the HTTP contract: addresses, time limits, lost clients, draining. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { ServeOptions } from '../../adapters/runtimes/node.ts'
import { cleanEnv } from '../support/cli-program.ts'
import { connectRaw, type RawConnection } from '../support/raw-connection.ts'
import type { Order, PlainResponse } from './adapter-child.ts'
import { absence, RUNTIMES } from './runtimes.ts'

/** Longer than a test may take, so that waiting for it fails. */
const never = 2 ** 31 - 1

const script = fileURLToPath(new URL('adapter-child.ts', import.meta.url))

function startRuntime([runtime = '', ...words]: readonly string[]) {
  const child = spawn(runtime, [...words, script], { env: cleanEnv(), stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  async function response(): Promise<Record<string, unknown>> {
    const { done, value } = await lines.next()
    if (done) throw new Error('The program has ended.')
    return JSON.parse(value)
  }
  const sendCommand = (order: Order): void => void child.stdin.write(`${JSON.stringify(order)}\n`)
  return {
    tell: sendCommand,
    /** The next event. */
    response,
    async serve(options: ServeOptions = {}) {
      sendCommand({ serve: { port: 0, ...options } })
      const { url, port } = await response() as { url: string; port: number }
      return { url, port, open: () => connectRaw('127.0.0.1', port) }
    },
    signal: (name: NodeJS.Signals): void => void child.kill(name),
    async end() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const post = (length: number): string => `POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`

const type = 'Content-Type'

/** Takes from Node the undocumented member of its servers that the adapter sets. */
const withoutHalfOpen = "data:text/javascript,import { Server } from 'node:http'; Object.defineProperty(" +
  "Server.prototype, 'httpAllowHalfOpen', { get: () => false, set() {} })"

/** Each pair of neighbours differs in something that a `Response` may take over from another one. */
const RESPONSES: readonly PlainResponse[] = [
  { status: 200, headers: [type, 'a/b', 'ETag', '"1"', 'X-Request-Id', 'a'], cached: 'one' },
  { status: 200, headers: [type, 'a/b', 'ETag', '"1"', 'X-Request-Id', 'b'], cached: 'one' },
  { status: 200, headers: [type, 'a/b', 'ETag', '"2"', 'X-Request-Id', 'c'], cached: 'tw…' },
  { status: 200, headers: [type, 'a/b', 'ETag', '"1"', 'Link', '<a>', 'X-Request-Id', 'd'], cached: 'one' },
  {
    status: 200,
    headers: [type, 'a/b', 'Content-Encoding', 'x', 'ETag', '"3"', 'X-Request-Id', 'e'],
    cached: 'three',
  },
  {
    status: 200,
    headers: [type, 'a/b', 'Content-Encoding', 'x', 'ETag', '"3"', 'X-Request-Id', 'f'],
    cached: 'three',
  },
  { status: 201, headers: [type, 'a/b', 'X-Request-Id', 'g'], body: 'fou…' },
  { status: 400, headers: [type, 'a/c', 'X-Request-Id', 'h'], body: 'five' },
  { status: 408, headers: [type, 'a/c', 'X-Request-Id', 'i'], body: 'six' },
  { status: 409, headers: [type, 'a/c', 'X-Request-Id', 'j'], body: 'seven' },
  { status: 200, headers: [type, 'a/c', 'X-Request-Id', 'k'] },
  { status: 304, headers: ['ETag', '"1"', 'X-Request-Id', 'l'] },
  { status: 204, headers: ['Allow', 'GET', 'X-Request-Id', 'm'] },
  { status: 200, headers: [type, 'a/b', 'ETag', '"1"', 'X-Request-Id', 'n'], cached: 'one' },
]

/** The status, sorted headers and text of a response as `Response`. */
function described({ status, headers, body, cached }: PlainResponse) {
  const all = status === 408 ? [...headers, 'Connection', 'close'] : headers
  const fields = all.flatMap((name, index) => index % 2 === 0 ? [[name.toLowerCase(), all[index + 1]!]] : [])
  return [status, fields.toSorted(([a], [b]) => a! < b! ? -1 : 1), body ?? cached ?? '']
}

t.jobs = RUNTIMES.length
for (const runtime of RUNTIMES) {
  t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false, timeout: 120_000 }, async (t) => {
    const here = startRuntime(runtime.command)
    const { tell: sendCommand, response, serve, signal, end } = here
    t.teardown(end)

    await t.test('a request has the address of its client, and invalid options are refused', async (t) => {
      const { url, port } = await serve()
      t.equal(url, `http://127.0.0.1:${port}`)
      await (await fetch(`${url}/asked?a=b`)).text()
      t.strictSame(
        await response(),
        { asked: '/asked?a=b', address: '127.0.0.1' },
        'the address of the client',
      )
      const invalid = await fetch(`${url}/header`)
      t.strictSame([invalid.status, await invalid.json()], [500, { code: 'internal' }])
      await response()

      sendCommand({ attempt: { port } })
      const message = `Cannot listen on 127.0.0.1:${port}: the address is in use`
      t.strictSame(await response(), { name: 'Error', message, code: 'EADDRINUSE' })
      // An address of no machine (RFC 5737 §3), because tests ask no name server. Deno says EINVAL.
      sendCommand({ attempt: { port: 0, host: '192.0.2.1' } })
      t.match(await response(), { name: 'Error', code: /^E(?:ADDRNOTAVAIL|INVAL)$/ })
      sendCommand({ attempt: { port: 0, host: '::1' } })
      t.match(await response(), { url: /^http:\/\/\[::1\]:\d+$/, status: 200 })
      t.strictSame(await response(), { closed: true })
      for (const [name, value] of Object.entries({ port: 65_536, requestTimeoutMs: -1 })) {
        sendCommand({ attempt: { port: 0, [name]: value } })
        t.match(await response(), { name: 'RangeError', message: new RegExp(`^${name} must be`) })
      }
    })

    // Only Bun collects garbage when it is told to.
    if (runtime.name === 'Bun') {
      await t.test('addresses keep nothing of the fields that they are parts of', async (t) => {
        sendCommand('measure addresses')
        const { kept } = await response() as { kept: number }
        t.ok(kept < 10, `${kept} MB`)
      })
    }

    await t.test('a Response shares nothing with the one that it was made from', async (t) => {
      sendCommand({ convert: RESPONSES })
      t.strictSame((await response())['converted'], [...RESPONSES, ...RESPONSES].map(described))
      const invalid: PlainResponse = {
        status: 200,
        headers: [type, 'a/c', 'ETag', 'a\r\nb', 'X-Request-Id', 'o'],
        cached: 'one',
      }
      const [, valid] = RESPONSES as readonly [PlainResponse, PlainResponse]
      sendCommand({ convert: [valid, invalid, valid] })
      const [first, failed, last] = (await response())['converted'] as ReturnType<typeof described>[]
      t.strictSame([first, last], [described(valid), described(valid)])
      t.equal(failed![0], 500, 'an invalid header value')
    })

    await t.test('bodies are read up to the limit and within the time limit', async (t) => {
      const { open } = await serve({ requestTimeoutMs: 500, drainTimeoutMs: never })
      const late = await open()
      late.write(`${post(3)}a`)
      const answer = await late.answer()
      t.strictSame([answer.status, answer.body], [408, '{"code":"request_timeout"}'])
      t.equal(answer.headers.get('connection'), 'close')
      t.match(await response(), { asked: '/body' })
      t.strictSame(await response(), { body: 'request_timeout' })

      const slow = await open()
      slow.write(post(16_000))
      const dripping = setInterval(() => slow.write('a'), 20)
      t.equal((await slow.answer()).status, 408, 'bytes that arrive do not extend the time')
      clearInterval(dripping)
      slow.destroy()
      t.match(await response(), { asked: '/body' })
      t.strictSame(await response(), { body: 'request_timeout' })

      const large = await open()
      large.write(`${post(40_000)}a`)
      t.equal((await large.answer()).status, 413, 'too large, before the body has arrived')
      large.destroy()
      t.match(await response(), { asked: '/body' })
      t.strictSame(await response(), { body: 'body_too_large' })

      late.end()
      sendCommand('drain')
      t.strictSame(await response(), { closed: true }, 'drain does not wait for a late body')
      t.strictSame(await response(), { drained: true })
      late.destroy()
    })

    await t.test('a client that does not read its response is disconnected', async (t) => {
      const options = { writeTimeoutMs: 500, keepAliveTimeoutMs: 1_000, drainTimeoutMs: never }
      const ways = {
        'its first one': get('/large'),
        'a later one, sent at once': `${get('/now')}${get('/large-now')}`,
        'a later one that waited for another': `${get('/now')}${post(1).replace('/body', '/now')}a${
          get('/large-now')
        }`,
      }
      for (const [way, requests] of Object.entries(ways)) {
        const { url, port } = await serve(options)
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => {})
        const [first = '', ...rest] = requests.split(/(?<=\r\n\r\n)/)
        socket.write(first)
        if (rest.length > 0) await once(socket, 'data')
        socket.pause().write(rest.join(''))
        if (!first.includes('now')) t.match(await response(), { asked: '/large' })
        // The server has read the requests that were sent before.
        await (await fetch(`${url}/now`)).text()
        sendCommand('drain')
        t.strictSame(await response(), { closed: true }, way)
        t.strictSame(await response(), { drained: true })
        socket.destroy()
      }
    })

    await t.test('a connection is closed when a later response stays pending', async (t) => {
      const { port } = await serve({ writeTimeoutMs: 500, keepAliveTimeoutMs: 1_000, drainTimeoutMs: never })
      const socket = connect(port, '127.0.0.1')
      socket.write(get('/now'))
      await once(socket, 'data')
      socket.write(get('/wait'))
      t.match(await response(), { asked: '/wait' })
      await once(socket, 'close')
      sendCommand('release')
      sendCommand('drain')
      t.strictSame(await response(), { closed: true })
      t.strictSame(await response(), { drained: true })
    })

    await t.test('a client that disconnects during its body does not affect others', async (t) => {
      const { url, open } = await serve()
      for (const way of ['destroy', 'reset', 'end'] as const) {
        const connection = await open()
        // Bun handles a request once a small body has arrived or cannot.
        connection.write(`${post(20_000)}a`)
        t.match(await response(), { asked: '/body' })
        connection[way]()
        t.strictSame(await response(), { body: 'malformed_request' }, way)
        if (way === 'end' && runtime.name !== 'Bun') t.equal((await connection.answer()).status, 400)
        connection.destroy()
      }
      t.equal((await fetch(`${url}/now`)).status, 200, 'other clients are served')
    })

    await t.test('pipelined requests are answered in order, except that Bun closes the connection', async (t) => {
      const { open } = await serve()
      const connection = await open()
      connection.write(get('/wait') + get('/now'))
      t.match(await response(), { asked: '/wait' })
      if (runtime.name === 'Bun') t.equal(await connection.ended(), '')
      sendCommand('release')
      if (runtime.name !== 'Bun') {
        for (const turn of ['first', 'second']) t.equal((await connection.answer()).status, 200, turn)
      }
      connection.destroy()
    })

    if (runtime.name.startsWith('Node')) {
      await t.test('a client that closes its half gets a pending response, if Node allows that', async (t) => {
        const limited = startRuntime([...runtime.command, '--import', withoutHalfOpen])
        t.teardown(limited.end)
        const written: string[] = []
        for (const { serve, response, tell } of [here, limited]) {
          const { open } = await serve()
          const staying = await open()
          const leaving = await open()
          leaving.write(get('/wait'))
          t.match(await response(), { asked: '/wait' })
          leaving.end()
          await leaving.flushed()
          staying.write(get('/now').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
          written.push((await staying.ended()).replace(/^Date: .*/m, ''))
          tell('release')
          const pending = await leaving.answer().catch(() => undefined)
          t.equal(pending?.status, tell === sendCommand ? 200 : undefined)
          t.equal(await leaving.ended(), '')
          for (const connection of [staying, leaving]) connection.destroy()
        }
        t.match(written[0], /^HTTP\/1.1 200 /)
        t.equal(written[1], written[0], 'other responses have the same bytes')
      })
    }

    await t.test('what follows an error on a connection does not reach another one', async (t) => {
      const timed = await serve({ requestTimeoutMs: 500 })
      const { url, open } = await serve({ requestTimeoutMs: 0 })
      // The response comes after the server has read what other connections sent before.
      const hasRead = async () => void await (await fetch(`${url}/now`)).text()

      /** The target that the server sees when `wrong` sends something between the halves of another request. */
      async function targetBeside(wrong: RawConnection): Promise<unknown> {
        const other = await open()
        other.write('GET /a')
        await other.flushed()
        await hasRead()
        wrong.write('b')
        await wrong.flushed()
        await hasRead()
        other.write('c HTTP/1.1\r\nHost: a\r\n\r\n')
        const { status } = await other.answer()
        other.destroy()
        wrong.destroy()
        return status === 200 ? (await response())['asked'] : status
      }

      const malformed = await open()
      malformed.write('GET / HTTP/1.1\r\na\r\n\r\n')
      t.equal((await malformed.answer()).status, 400)
      t.equal(await targetBeside(malformed), '/ac', 'a malformed head')

      const large = await open()
      large.write(`GET /${'a'.repeat(200_000)}`)
      await large.flushed()
      await hasRead()
      t.equal(await targetBeside(large), '/ac', 'a target over the limit')

      const late = await timed.open()
      late.write(`${post(3)}a`)
      t.equal((await late.answer()).status, 408)
      t.match(await response(), { asked: '/body' })
      t.strictSame(await response(), { body: 'request_timeout' })
      t.equal(await targetBeside(late), '/ac', 'a late body')
    })

    await t.test('drain completes responses, closes idle connections and refuses new ones', async (t) => {
      const { open } = await serve({ drainTimeoutMs: never })
      const silent = await open()
      // For a second, Linux hides a connection without data from Bun (TCP_DEFER_ACCEPT).
      if (runtime.name === 'Bun') await new Promise((resolve) => setTimeout(resolve, 1_500))
      const idle = await open()
      idle.write(get('/now'))
      t.equal((await idle.answer()).status, 200)
      const busy = await open()
      busy.write(get('/wait'))
      t.match(await response(), { asked: '/wait' })
      sendCommand('drain')
      t.equal(await idle.ended(), '')
      sendCommand('release')
      const { status, headers } = await busy.answer()
      t.strictSame([status, headers.get('connection')], [200, 'close'])
      t.equal(await busy.ended(), '')
      t.strictSame(await response(), { closed: true }, 'the service is closed after draining')
      t.strictSame(await response(), { drained: true }, 'once')
      await t.rejects(open(), { code: 'ECONNREFUSED' })
      for (const connection of [silent, idle, busy]) connection.destroy()
    })

    await t.test('until the end of the delay, drain closes connections only after a response', async (t) => {
      const { open } = await serve({ drainTimeoutMs: never })
      const used = await open()
      const idle = await open()
      for (const connection of [used, idle]) {
        connection.write(get('/now'))
        t.not((await connection.answer()).headers.get('connection'), 'close')
      }
      sendCommand('drain after release')
      t.strictSame(await response(), { draining: true })
      for (const connection of [used, await open()]) {
        connection.write(get('/now'))
        const { status, headers } = await connection.answer()
        t.strictSame([status, headers.get('connection')], [200, 'close'])
        t.equal(await connection.ended(), '')
        connection.destroy()
      }
      // The system accepts connections that the program finds when it goes on, together with the end of the delay.
      signal('SIGSTOP')
      const waiting = await Promise.all(Array.from({ length: 20 }, open))
      for (const connection of waiting) {
        connection.write(get('/now'))
        await connection.flushed()
      }
      sendCommand('release')
      signal('SIGCONT')
      for (const connection of waiting) {
        t.equal((await connection.answer()).headers.get('connection'), 'close', 'a connection that waited')
        connection.destroy()
      }
      t.equal(await idle.ended(), '')
      t.strictSame(await response(), { closed: true })
      t.strictSame(await response(), { drained: true })
      idle.destroy()
    })

    await t.test('drain answers requests whose body does not arrive before it closes the service', async (t) => {
      const { open } = await serve({ drainTimeoutMs: 1_000 })
      const late = await open()
      late.write(`${post(20_000)}a`)
      t.match(await response(), { asked: '/body' })
      const small = await open()
      small.write(`${post(3)}a`)
      await small.flushed()
      sendCommand('drain')
      for (const connection of [late, small]) {
        t.equal((await connection.answer()).status, 408)
        connection.end()
      }
      const bodies = []
      let event = await response()
      for (; event['closed'] === undefined; event = await response()) bodies.push(event['body'] ?? [])
      t.strictSame(bodies.flat(), ['request_timeout', 'request_timeout'])
      t.strictSame(event, { closed: true })
      t.strictSame(await response(), { drained: true })
      late.destroy()
      small.destroy()
    })

    await t.test('drain disconnects clients whose requests do not finish', async (t) => {
      const { open } = await serve({ drainTimeoutMs: 50 })
      const connection = await open()
      connection.write(get('/wait'))
      t.match(await response(), { asked: '/wait' })
      sendCommand('drain')
      t.strictSame(await response(), { closed: true })
      t.strictSame(await response(), { drained: true })
      connection.destroy()
    })
  })
}

/** What the adapters of Bun and Deno promise beyond the contract of the wire: addresses, time-outs, clients that leave, drain. */
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { ServeOptions } from '../../adapters/runtimes/node.ts'
import { RUNTIMES } from '../runtimes/runtimes.ts'
import { cleanEnv } from '../support/cli-program.ts'
import { connectRaw, type RawConnection } from '../support/raw-connection.ts'

/** Longer than a test may take: what waits for it has failed. */
const never = 2 ** 31 - 1

const program = fileURLToPath(new URL('../runtimes/adapter-child.ts', import.meta.url))

interface Served {
  readonly url: string
  readonly port: number
  say(word: string): void
  /** The next thing that happened. */
  heard(): Promise<Record<string, unknown>>
  open(): Promise<RawConnection>
  end(): void
}

async function start(
  [runtime = '', ...words]: readonly string[],
  options: ServeOptions = {},
): Promise<Served> {
  const child = spawn(runtime, [...words, program, JSON.stringify({ port: 0, ...options })], {
    env: cleanEnv(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const heard = async (): Promise<Record<string, unknown>> => {
    const { done, value } = await lines.next()
    if (done) throw new Error('The program has ended.')
    return JSON.parse(value)
  }
  const { url, port } = await heard() as { url: string; port: number }
  return {
    url,
    port,
    say: (word) => void child.stdin.write(`${word}\n`),
    heard,
    open: () => connectRaw('127.0.0.1', port),
    end: () => void child.kill('SIGKILL'),
  }
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const post = (length: number): string => `POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`

for (const { name, command } of RUNTIMES.filter(({ name }) => name === 'Bun' || name === 'Deno')) {
  await t.test(name, async (t) => {
    await t.test('addresses', async (t) => {
      const { url, port, say, heard, end } = await start(command)
      t.teardown(end)
      t.equal(url, `http://127.0.0.1:${port}`)
      await (await fetch(`${url}/asked?a=b`)).text()
      t.strictSame(await heard(), { asked: '/asked?a=b', address: '127.0.0.1' }, 'the client’s is known')
      say('again')
      const message = `Cannot listen on 127.0.0.1:${port}: the address is in use`
      t.strictSame(await heard(), { name: 'Error', message, code: 'EADDRINUSE' })
      say('unknown host')
      t.match(await heard(), { name: 'Error', code: 'ENOTFOUND' })
      say('IPv6')
      t.match(await heard(), { url: /^http:\/\/\[::1\]:\d+$/, status: 200 })
      t.strictSame(await heard(), { closed: true })
      for (const setting of ['port 65536', 'requestTimeoutMs -1']) {
        say(setting)
        t.match(await heard(), {
          name: 'RangeError',
          message: new RegExp(`^${setting.split(' ')[0]} must be`),
        })
      }
    })

    await t.test('a header that must not be sent', async (t) => {
      const { url, end } = await start(command)
      t.teardown(end)
      const answer = await fetch(`${url}/header`)
      t.strictSame([answer.status, await answer.json()], [500, { code: 'internal' }])
    })

    await t.test('bodies', async (t) => {
      const options = { requestTimeoutMs: 2_000, drainTimeoutMs: never }
      const { say, heard, open, end } = await start(command, options)
      t.teardown(end)
      const late = await open()
      late.write(`${post(3)}a`)
      const answer = await late.answer()
      t.strictSame([answer.status, answer.body], [408, '{"code":"request_timeout"}'])
      t.equal(answer.headers.get('connection'), 'close')
      t.match(await heard(), { asked: '/body' })
      t.strictSame(await heard(), { body: 'request_timeout' })

      const large = await open()
      large.write(`${post(11)}a`)
      t.equal((await large.answer()).status, 413, 'too large before it has come')
      large.destroy()
      t.match(await heard(), { asked: '/body' })
      t.strictSame(await heard(), { body: 'body_too_large' })

      say('drain')
      t.strictSame(await heard(), { closed: true }, 'drain does not wait for a body that came too late')
      late.destroy()
    })

    await t.test('a client that does not read its answer is cut off', async (t) => {
      const options = { writeTimeoutMs: 100, keepAliveTimeoutMs: 1_000, drainTimeoutMs: never }
      const { port, say, heard, end } = await start(command, options)
      t.teardown(end)
      const socket = connect(port, '127.0.0.1').pause()
      socket.on('error', () => {})
      socket.write(get('/large'))
      t.match(await heard(), { asked: '/large' })
      say('drain')
      t.strictSame(await heard(), { closed: true })
      socket.destroy()
    })

    await t.test('a client that goes away in the middle of its body', async (t) => {
      const { url, heard, open, end } = await start(command)
      t.teardown(end)
      for (const way of ['destroy', 'reset', 'end'] as const) {
        const connection = await open()
        connection.write(`${post(3)}a`)
        t.match(await heard(), { asked: '/body' })
        connection[way]()
        t.strictSame(await heard(), { body: 'malformed_request' }, way)
        connection.destroy()
      }
      t.equal((await fetch(`${url}/now`)).status, 200, 'others are served')
    })

    await t.test('drain lets answers finish, closes idle connections and refuses new ones', async (t) => {
      const { say, heard, open, end } = await start(command)
      t.teardown(end)
      const idle = await open()
      idle.write(get('/now'))
      t.equal((await idle.answer()).status, 200)
      const busy = await open()
      busy.write(get('/wait'))
      t.match(await heard(), { asked: '/wait' })
      say('drain')
      t.equal(await idle.ended(), '')
      say('release')
      t.equal((await busy.answer()).status, 200)
      t.equal(await busy.ended(), '')
      t.strictSame(await heard(), { closed: true }, 'then the service is closed')
      t.strictSame(await heard(), { drained: true }, 'once')
      await t.rejects(open(), { code: 'ECONNREFUSED' })
    })

    await t.test('drain answers requests whose body does not arrive before it closes the service', async (t) => {
      const { say, heard, open, end } = await start(command, { drainTimeoutMs: 1_000 })
      t.teardown(end)
      const late = await open()
      late.write(`${post(3)}a`)
      t.match(await heard(), { asked: '/body' })
      say('drain')
      t.strictSame(await heard(), { body: 'request_timeout' })
      t.equal((await late.answer()).status, 408)
      t.strictSame(await heard(), { closed: true })
      late.destroy()
    })

    await t.test('drain does not wait for what does not finish', async (t) => {
      const { say, heard, open, end } = await start(command, { drainTimeoutMs: 50 })
      t.teardown(end)
      const connection = await open()
      connection.write(get('/wait'))
      t.match(await heard(), { asked: '/wait' })
      say('drain')
      t.strictSame(await heard(), { closed: true })
      t.strictSame(await heard(), { drained: true })
      connection.destroy()
    })
  })
}

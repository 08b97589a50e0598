/** How the client asks: what it asks again, and what it takes for no answer. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ServiceUnreachableError } from '../../adapters/client/mod.ts'
import { gather, good, key, makeClient, problem, scripted } from './scripted-server.ts'

await t.test('a list whose pages are not turned ends', async (t) => {
  for (const next_cursor of ['same', null]) {
    const page = (): Response =>
      new Response(JSON.stringify({ data: [{}], page: { limit: 1, has_more: true, next_cursor } }))
    const { asked, client } = scripted([page, page, page])
    await t.rejects(gather(client.profiles()), { name: 'ServiceUnreachableError' })
    t.equal(asked.length, next_cursor === null ? 1 : 2)
  }
  await t.rejects(
    gather(scripted([good]).client.profiles()),
    { name: 'ServiceUnreachableError' },
    'nor does one without pages',
  )
})

await t.test('what may pass is tried again, as late as it is asked to be', async (t) => {
  const { asked, client } = scripted([
    () => problem('rate_limited', 429, { 'retry-after': '1' }),
    () => problem('store_unavailable', 503, { 'retry-after': '0' }),
    good,
  ])
  const began = performance.now()
  t.strictSame(await client.plans(), [])
  t.ok(performance.now() - began >= 990)
  t.equal(asked.length, 3)

  const patient = scripted([() => problem('rate_limited', 429, { 'retry-after': '61' }), good])
  await t.rejects(
    patient.client.plans(),
    { code: 'rate_limited', retryAfterSeconds: 61 },
    'not for that long',
  )
  t.equal(patient.asked.length, 1)

  const never = scripted([() => problem('store_unavailable', 503), good], { retries: 0 })
  await t.rejects(never.client.plans(), { code: 'store_unavailable' })

  const later = new Date(Date.now() + 90_000).toUTCString()
  for (const said of ['61', later]) {
    const gateway = scripted([
      () => new Response('<h1>Later</h1>', { status: 503, headers: { 'retry-after': said } }),
      good,
    ])
    await t.rejects(
      gateway.client.plans(),
      { name: 'ServiceUnreachableError', status: 503 },
      `a gateway says ${said}`,
    )
    t.equal(gateway.asked.length, 1)
  }
  const past = scripted([
    () => problem('store_unavailable', 503, { 'retry-after': new Date(0).toUTCString() }),
    good,
  ])
  t.strictSame(await past.client.plans(), [])

  const silent = scripted([], { retries: 1 })
  await t.rejects(silent.client.plans(), { name: 'ServiceUnreachableError', status: undefined })
  t.equal(silent.asked.length, 2)
})

await t.test('pauses double, up to half a minute', async (t) => {
  const { setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { setTimeout }))
  const pauses: number[] = []
  Object.assign(globalThis, {
    setTimeout(act: () => void, ms: number) {
      pauses.push(ms)
      return setTimeout(act, 0)
    },
  })
  await t.rejects(scripted([], { retries: 40 }).client.plans(), { name: 'ServiceUnreachableError' })
  t.equal(pauses.length, 40)
  for (const [attempt, ms] of pauses.entries()) {
    const whole = Math.min(250 * 2 ** attempt, 20_000)
    t.ok(whole / 2 <= ms && ms < whole * 1.5 && ms <= 30_000, `${ms} ms after attempt ${attempt + 1}`)
  }
})

await t.test('an answer that breaks off is none', async (t) => {
  const broken = (): Response =>
    new Response(
      new ReadableStream({
        start(body) {
          body.enqueue(new TextEncoder().encode('{"data":'))
          body.error(new TypeError('terminated'))
        },
      }),
    )
  const { asked, client } = scripted([broken, good])
  t.strictSame(await client.plans(), [])
  t.equal(asked.length, 2)
  await t.rejects(scripted([broken], { retries: 0 }).client.plans(), {
    name: 'ServiceUnreachableError',
    status: undefined,
  })
})

await t.test('the key is not sent to other servers, and responses of other services are errors', async (t) => {
  const moved = scripted([
    () => new Response(null, { status: 302, headers: { location: 'https://other.example/' } }),
  ])
  await t.rejects(moved.client.plans(), { name: 'ServiceUnreachableError', status: 302 })
  t.strictSame([moved.asked.length, moved.asked[0]?.redirect], [1, 'manual'])
  t.notOk(moved.asked[0]?.url.includes(key))
  for (
    const foreign of [{ code: 'NOT_FOUND', detail: 'No such page.' }, { code: 'x', detail: 'y', status: 503 }]
  ) {
    const other = scripted([() => new Response(JSON.stringify(foreign), { status: 404 }), good])
    await t.rejects(
      other.client.plans(),
      { name: 'ServiceUnreachableError', status: 404 },
      'problems of others',
    )
    t.equal(other.asked.length, 1)
  }
  const page = scripted([() => new Response('<h1>Welcome</h1>')])
  await t.rejects(page.client.plans(), { name: 'ServiceUnreachableError', status: 200 })
  t.ok(
    await page.client.plans().catch((error) =>
      error instanceof ServiceUnreachableError && error.cause instanceof TypeError
    ),
  )
})

await t.test('a call can be given up, also while it waits', async (t) => {
  const { asked, client } = scripted([() => problem('rate_limited', 429, { 'retry-after': '30' }), good])
  const giveUp = new AbortController()
  const call = client.plans({ signal: giveUp.signal })
  setTimeout(() => giveUp.abort(new Error('enough')), 20)
  await t.rejects(call, { message: 'enough' })
  t.equal(asked.length, 1)
  await t.rejects(client.plans({ signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
  t.equal(asked.length, 1)
})

await t.test('an attempt that takes too long is given up, and made again', async (t) => {
  const asked: string[] = []
  const silent = createServer((request) => void asked.push(request.url!)).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close().closeAllConnections())
  const { port } = silent.address() as AddressInfo
  const slow = makeClient({ url: `http://127.0.0.1:${port}`, timeoutMs: 50, retries: 1 })
  await t.rejects(slow.profile('x'), {
    name: 'ServiceUnreachableError',
    message: /did not respond within 50 ms\.$/,
    status: undefined,
    cause: { name: 'TimeoutError' },
  })
  t.strictSame(asked, Array(2).fill('/service/public/profiles/x?partner=demo'))
})

await t.test('a request that fails on the network says why', async (t) => {
  const server = createServer((request) => request.socket.resetAndDestroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const messageOf = (url: string): Promise<string> =>
    makeClient({ url, retries: 0 }).plans().then(() => '', ({ message }) => message)
  t.equal(
    await messageOf(`http://127.0.0.1:${port}`),
    `http://127.0.0.1:${port} did not respond: the connection was closed.`,
  )
  t.match(
    await messageOf(`https://127.0.0.1:${port}`),
    / the TLS handshake failed/,
  )
  t.match(await messageOf('http://tls.invalid'), / its host name could not be resolved \(DNS\)\.$/)
  server.close()
  await once(server, 'close')
  t.match(await messageOf(`http://127.0.0.1:${port}`), / the connection was refused\.$/)

  // As Deno has it: words only, and the URL, with its query, among them.
  for (
    const [words, failure] of [
      ['tcp connect error: Connection refused (os error 111)', ': the connection was refused'],
      ['dns error: failed to lookup address information', ': its host name could not be resolved (DNS)'],
      ['invalid peer certificate: UnknownIssuer', ': the TLS handshake failed'],
      ['something else', ''],
    ]
  ) {
    const cause = new Error(`error sending request for url (https://tls.example/?q=ENOTFOUND): ${words}`)
    const client = makeClient({
      retries: 0,
      fetch: () => Promise.reject(new TypeError('fetch failed', { cause })),
    })
    await t.rejects(client.plans(), { message: `https://api.example did not respond${failure}.` })
  }
})

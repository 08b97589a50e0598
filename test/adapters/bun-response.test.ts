/** Responses of the adapter of Bun, which reuse headers of an earlier one: they equal new ones. */
import fc from 'fast-check'
import t from 'tap'
import { createBunResponseConverter } from '../../adapters/runtimes/bun-response.ts'
import type { HttpResponse } from '../../core/http/message.ts'

const internal: HttpResponse = { status: 500, headers: ['X-Request-Id', 'req_0'], body: '{}' }

/** A response that reuses nothing. */
function responseOf({ status, headers, body }: HttpResponse): Response {
  const pairs = Array.from({ length: headers.length / 2 }, (_, index): [string, string] => {
    return [headers[2 * index]!, headers[2 * index + 1]!]
  })
  return new Response(body as BodyInit | undefined ?? null, { status, headers: pairs })
}

async function contentOf(response: Response): Promise<unknown> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  return [response.status, [...response.headers], Buffer.from(bytes).toString('hex')]
}

const cached = [
  { headers: ['Content-Type', 'application/json', 'ETag', '"a"'], body: Buffer.from('{"name":"Östra 👋"}') },
  {
    headers: ['Content-Type', 'text/html', 'ETag', '"b"', 'Link', '<?c>; rel="next"'],
    body: Buffer.from('<p>Grüße</p>'),
  },
  {
    headers: ['Content-Type', 'text/html', 'Content-Encoding', 'gzip'],
    body: Buffer.from([0x1f, 0x8b, 0xff]),
  },
]
const field = fc.tuple(
  fc.constantFrom('X-Request-Id', 'RateLimit', 'RateLimit-Policy'),
  fc.constantFrom('1', '2', '3'),
)
const answers = fc.record({
  kind: fc.nat(3),
  asksForHead: fc.boolean(),
  more: fc.uniqueArray(field, { selector: ([name]) => name, maxLength: 3 }),
}).map(({ kind, asksForHead, more }): HttpResponse => {
  const { headers, body } = cached[kind] ?? { headers: [], body: 'not cached' }
  return { status: 200, headers: [...headers, ...more.flat()], body: asksForHead ? undefined : body }
})

t.test('a reused response equals a new one, whatever preceded it', async (t) => {
  await t.resolves(fc.assert(fc.asyncProperty(fc.array(answers, { maxLength: 12 }), async (sequence) => {
    const respond = createBunResponseConverter(() => internal)
    for (const answer of sequence) {
      const found = await contentOf(respond(answer))
      const wanted = await contentOf(responseOf(answer))
      if (JSON.stringify(found) !== JSON.stringify(wanted)) {
        throw new Error(`${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`)
      }
    }
  })))
})

t.test('a field that the platform forbids is an error', async (t) => {
  const respond = createBunResponseConverter(() => internal)
  const body = Buffer.from('a')
  const answer = (id: string, limit: string): HttpResponse => {
    return {
      status: 200,
      headers: ['Content-Type', 'text/plain', 'ETag', '"a"', 'X-Request-Id', id, 'RateLimit', limit],
      body,
    }
  }
  for (const [id, limit] of [['1', '9'], ['2', 'a\r\nb'], ['1', '9'], ['3', '8']] as const) {
    const wanted = limit.includes('\r') ? internal : answer(id, limit)
    t.strictSame(await contentOf(respond(answer(id, limit))), await contentOf(responseOf(wanted)))
  }
  t.end()
})

t.test('at most 2,048 responses are cached', async (t) => {
  const { Response } = globalThis
  let made = 0
  globalThis.Response = class extends Response {
    constructor(body?: BodyInit | null, init?: ResponseInit) {
      super(body, init)
      // Those that are kept get their headers afterwards.
      if (init === undefined) made++
    }
  }
  t.teardown(() => globalThis.Response = Response)
  const url = '../../adapters/runtimes/bun-response.ts?replaced'
  const fresh: typeof import('../../adapters/runtimes/bun-response.ts') = await import(url)
  const respond = fresh.createBunResponseConverter(() => internal)
  const answers = Array.from({ length: 2_049 }, (_, index): HttpResponse => {
    const headers = ['Content-Type', 'text/plain', 'ETag', `"${index}"`, 'X-Request-Id', '1']
    return { status: 200, headers, body: Buffer.from('a') }
  })
  const [first] = answers as [HttpResponse]
  const last = answers.pop() as HttpResponse
  for (const answer of [...answers, first]) respond(answer)
  t.equal(made, 2_048, '2,048 responses are cached')
  for (const answer of [last, last, first]) {
    t.strictSame(await contentOf(respond(answer)), await contentOf(responseOf(answer)))
  }
  t.equal(made, 2_050, 'then the first was evicted')
})

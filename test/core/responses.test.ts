/** Responses that take over from the last one of their stem are what they would be by themselves. */
import fc from 'fast-check'
import t from 'tap'
import { createResponseConverter } from '../../core/http/fetch.ts'
import type { HttpResponse } from '../../core/http/message.ts'

const internal: HttpResponse = { status: 500, headers: ['X-Request-Id', 'req_0'], body: '{}' }

/** A response that takes nothing over from anybody. */
function responseOf({ status, headers, body }: HttpResponse): Response {
  const pairs = Array.from({ length: headers.length / 2 }, (_, index): [string, string] => {
    return [headers[2 * index]!, headers[2 * index + 1]!]
  })
  return new Response(body as BodyInit | undefined ?? null, { status, headers: pairs })
}

async function told(response: Response): Promise<unknown> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  return [response.status, [...response.headers], Buffer.from(bytes).toString('hex')]
}

const stems = [
  ['Content-Type', 'application/json', 'ETag', '"a"'],
  ['Content-Type', 'text/html', 'ETag', '"b"', 'Link', '<?c>; rel="next"'],
]
const bodies = ['{"name":"Östra 👋"}', Buffer.from('<p>Grüße</p>')]
const field = fc.tuple(
  fc.constantFrom('X-Request-Id', 'RateLimit', 'RateLimit-Policy'),
  fc.constantFrom('1', '2', '3'),
)
const answers = fc.record({
  kind: fc.nat(2),
  asksForHead: fc.boolean(),
  more: fc.uniqueArray(field, { selector: ([name]) => name, maxLength: 3 }),
}).map(({ kind, asksForHead, more }): HttpResponse => {
  const stem = stems[kind]
  return {
    status: 200,
    headers: [...(stem ?? []), ...more.flat()],
    body: asksForHead ? undefined : bodies[kind] ?? 'no stem',
    ...(stem && { stem }),
  }
})

t.test('whatever was answered before', async (t) => {
  await fc.assert(fc.asyncProperty(fc.array(answers, { maxLength: 12 }), async (sequence) => {
    const respond = createResponseConverter(() => internal)
    for (const answer of sequence) {
      const [found, wanted] = [await told(respond(answer)), await told(responseOf(answer))]
      if (JSON.stringify(found) !== JSON.stringify(wanted)) {
        throw new Error(`${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`)
      }
    }
  }))
  t.pass()
})

t.test('a field that must not be sent', async (t) => {
  const respond = createResponseConverter(() => internal)
  const [stem] = stems as [string[]]
  const answer = (id: string, limit: string): HttpResponse => {
    return { status: 200, headers: [...stem, 'X-Request-Id', id, 'RateLimit', limit], body: 'a', stem }
  }
  for (const [id, limit] of [['1', '9'], ['2', 'a\r\nb'], ['1', '9'], ['3', '8']] as const) {
    const wanted = limit.includes('\r') ? internal : answer(id, limit)
    t.strictSame(await told(respond(answer(id, limit))), await told(responseOf(wanted)))
  }
  t.end()
})

t.test('no more is remembered than 2,048 answers', async (t) => {
  const { Headers } = globalThis
  let made = 0
  globalThis.Headers = class extends Headers {
    constructor() {
      super()
      made++
    }
  }
  t.teardown(() => globalThis.Headers = Headers)
  const respond = createResponseConverter(() => internal)
  const answers = Array.from({ length: 2_049 }, (_, index): HttpResponse => {
    const stem = ['ETag', `"${index}"`]
    return { status: 200, headers: [...stem, 'X-Request-Id', '1'], body: 'a', stem }
  })
  const [first] = answers as [HttpResponse]
  const last = answers.pop() as HttpResponse
  for (const answer of [...answers, first]) respond(answer)
  t.equal(made, 2_048, 'so many are')
  for (const answer of [last, last, first]) {
    t.strictSame(await told(respond(answer)), await told(responseOf(answer)))
  }
  t.equal(made, 2_050, 'then the first is made anew')
})

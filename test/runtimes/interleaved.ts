/** Answers to different keys, asked for at the same time, have nothing of each other. */
import { type Heard, type TestContext, withKey } from '../contract/http/service.ts'
import { socketWire } from '../contract/http/wires.ts'
import type { ServingChild } from './child.ts'
import type { Template } from './template.ts'

const list = (partner: string, limit: number) => `/service/public/profiles?partner=${partner}&limit=${limit}`
const known = { 'if-none-match': '*' }

/** What is asked in turn: with whose key, what, and the status of its answer. */
const asks = [
  { by: 'demo full', target: list('demo', 3), status: 200 },
  { by: 'acme full', target: list('acme', 3), status: 200 },
  { by: 'acme full', target: list('demo', 3), status: 403 },
  { by: 'demo full', target: list('demo', 3), status: 200, method: 'HEAD' },
  { by: 'demo full', target: list('demo', 3), status: 304, headers: known },
  { by: 'acme full', target: list('acme', 3), status: 304, headers: known },
  { by: 'demo full', target: list('demo', 0), status: 400 },
  { by: undefined, target: '/service/health', status: 200 },
  { by: undefined, target: list('demo', 3), status: 401 },
] as const

export async function interleaved(t: TestContext, child: ServingChild, template: Template): Promise<void> {
  const limits = { key: { quota: 10_000, windowSeconds: 3_600 } }
  const place = await child.serve(template.copy(), { limits })
  const wire = socketWire(place.origin)
  const answers = await Promise.all(Array.from({ length: 20 * asks.length }, async (_, index) => {
    const { by, ...ask } = asks[index % asks.length]!
    const headers = { ...(by && withKey(template.filling.keys[by])), ...('headers' in ask && ask.headers) }
    return { by, ask, response: await wire.send({ ...ask, headers }) }
  }))
  wire.close()
  await child.stop(place)

  const remainingIn = ({ headers }: Heard) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
  const requestIds = new Set<string | undefined>()
  const fields = new Map<string, string>()
  for (const { by, ask, response: { status, headers, repeated, json } } of answers) {
    t.strictSame([status, repeated], [ask.status, []])
    const requestId = headers.get('x-request-id')
    requestIds.add(requestId)
    if (status >= 400) t.equal(json.request_id, requestId, 'the id in a problem is that of its answer')
    const constant = [...headers.keys(), headers.get('etag'), headers.get('link')].join()
    const question = `${by} ${JSON.stringify(ask)}`
    t.equal(fields.get(question) ?? constant, constant, 'the same question has the same fields')
    fields.set(question, constant)
  }
  t.equal(requestIds.size, answers.length, 'each has an id of its own')
  for (const key of ['demo full', 'acme full', undefined] as const) {
    const remaining = answers.filter(({ by }) => by === key).map(({ response }) => remainingIn(response))
    const expected = key === undefined ? 1 : remaining.length
    t.equal(
      new Set(remaining).size,
      expected,
      `${key}: each request with a key has its own place in the quota`,
    )
  }
}

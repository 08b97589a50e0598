/** Concurrent responses to different keys do not mix. */
import { type TestContext, type TestResponse, withKey } from '../contract/http/service.ts'
import { socketTransport } from '../contract/http/wires.ts'
import type { ServingChild } from './child.ts'
import type { Template } from './template.ts'

const list = (partner: string, limit: number) => `/service/public/profiles?partner=${partner}&limit=${limit}`
const known = { 'if-none-match': '*' }

/** Requests sent in turn: key, target, and expected status. */
const requests = [
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
  const wire = socketTransport(place.origin)
  const responses = await Promise.all(Array.from({ length: 20 * requests.length }, async (_, index) => {
    const { by, ...request } = requests[index % requests.length]!
    const headers = {
      ...(by && withKey(template.filling.keys[by])),
      ...('headers' in request && request.headers),
    }
    return { by, ask: request, response: await wire.send({ ...request, headers }) }
  }))
  wire.close()
  await child.stop(place)

  const remainingIn = ({ headers }: TestResponse) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
  const requestIds = new Set<string | undefined>()
  const fields = new Map<string, string>()
  for (const { by, ask: request, response: { status, headers, repeated, json } } of responses) {
    t.strictSame([status, repeated], [request.status, []])
    const requestId = headers.get('x-request-id')
    requestIds.add(requestId)
    if (status >= 400) t.equal(json.request_id, requestId, 'the problem has the request id of its response')
    const constant = [...headers.keys(), headers.get('etag'), headers.get('link')].join()
    const name = `${by} ${JSON.stringify(request)}`
    t.equal(fields.get(name) ?? constant, constant, 'equal requests get equal fields')
    fields.set(name, constant)
  }
  t.equal(requestIds.size, responses.length, 'request ids are unique')
  for (const key of ['demo full', 'acme full', undefined] as const) {
    const remaining = responses.filter(({ by }) => by === key).map(({ response }) => remainingIn(response))
    const expected = key === undefined ? 1 : remaining.length
    t.equal(
      new Set(remaining).size,
      expected,
      `${key}: each request with a key reports a different remainder`,
    )
  }
}

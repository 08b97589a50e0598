/** Answers to different keys, asked for at the same time, have nothing of each other, whichever runtime makes them. */
import t from 'tap'
import { withKey } from '../contract/http/service.ts'
import { socketWire } from '../contract/http/wires.ts'
import { startChild } from './child.ts'
import { absence, RUNTIMES } from './runtimes.ts'
import { makeTemplate } from './template.ts'

const template = await makeTemplate()
t.teardown(() => template.remove())

const { 'demo full': demo, 'acme full': acme } = template.filling.keys
const list = (partner: string, limit: number) => `/service/public/profiles?partner=${partner}&limit=${limit}`
const known = { 'if-none-match': '*' }

/** What is asked in turn: by whom, what, and what comes of it. */
const asks = [
  { by: demo, target: list('demo', 3), status: 200 },
  { by: acme, target: list('acme', 3), status: 200 },
  { by: acme, target: list('demo', 3), status: 403 },
  { by: demo, target: list('demo', 3), status: 200, method: 'HEAD' },
  { by: demo, target: list('demo', 3), status: 304, headers: known },
  { by: acme, target: list('acme', 3), status: 304, headers: known },
  { by: demo, target: list('demo', 0), status: 400 },
  { by: undefined, target: '/service/health', status: 200 },
  { by: undefined, target: list('demo', 3), status: 401 },
] as const

for (const runtime of RUNTIMES) {
  await t.test(runtime.name, { skip: absence(runtime) ?? false }, async (t) => {
    const child = startChild(runtime.command)
    t.teardown(() => child.end())
    const quota = 10_000
    const { origin } = await child.serve(template.copy(), {
      limits: { key: { quota, windowSeconds: 3_600 } },
    })
    const wire = socketWire(origin)
    t.teardown(wire.close)
    const heard = await Promise.all(Array.from({ length: 50 * asks.length }, async (_, index) => {
      const { by, ...ask } = asks[index % asks.length]!
      const headers = { ...(by && withKey(by)), ...('headers' in ask ? ask.headers : {}) }
      return { by, ask, answer: await wire.send({ ...ask, headers }) }
    }))

    const ids = new Set<string | undefined>()
    const spent = new Set<string>()
    const fields = new Map<string, string>()
    for (const { by, ask, answer: { status, headers, repeated, json } } of heard) {
      t.equal(status, ask.status)
      t.strictSame(repeated, [])
      ids.add(headers.get('x-request-id'))
      const { request_id = headers.get('x-request-id') } = (json ?? {}) as { readonly request_id?: string }
      t.equal(request_id, headers.get('x-request-id'), 'the id in a problem is that of its answer')
      const remaining = /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
      t.equal(
        remaining === undefined,
        by === undefined,
        'whoever has a key is told of its limits, and nobody else',
      )
      if (by !== undefined) spent.add(`${by.id} ${remaining}`)
      const constant = [...headers.keys(), headers.get('etag'), headers.get('link')].join()
      const question = `${by?.id} ${JSON.stringify(ask)}`
      t.equal(fields.get(question) ?? constant, constant, 'the same question has the same fields')
      fields.set(question, constant)
    }
    t.equal(ids.size, heard.length, 'each has an id of its own')
    t.equal(spent.size, heard.filter(({ by }) => by !== undefined).length, 'and its own place in the quota')
  })
}

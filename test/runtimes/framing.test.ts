/**
 * Responses of each runtime's HTTP parser to malformed and unusual messages. Workers are omitted: their parser is that of
 * Cloudflare's edge.
 */
import t from 'tap'
import { PROBLEMS } from '../../core/http/problem.ts'
import { framingContract, type Outcome, type OwnParser } from '../contract/http/framing.ts'
import { tableRows } from '../integration/docs.ts'
import { connectRaw } from '../support/raw-connection.ts'
import { startChild } from './child.ts'
import { DIFFERENCES } from './differences.ts'
import { RUNTIMES } from './runtimes.ts'
import { makeTemplate } from './template.ts'

/** The outcomes that differ on a runtime. */
const differencesOn = (runtime: 'Deno' | 'Bun'): Readonly<Record<string, Outcome>> =>
  Object.fromEntries(
    DIFFERENCES.flatMap(({ cases }) =>
      Object.entries(cases).flatMap(([name, { [runtime]: outcome }]) => outcome ? [[name, outcome]] : [])
    ),
  )

const parsers: Readonly<Record<string, OwnParser | undefined>> = {
  'Node 22': undefined,
  'Node 24': undefined,
  'Node 26': undefined,
  // What Bun's parser rejects never reaches the service, so it gets no problem body.
  Bun: { refusesAlone: true, differences: differencesOn('Bun') },
  Deno: { refusesAlone: false, differences: differencesOn('Deno') },
}

t.test('the docs have a row for each difference, and its cells have each outcome', (t) => {
  const rows = DIFFERENCES.map(({ row }) => `| ${row.join(' | ')} |`)
  t.same(tableRows('docs/deploy.md', 'differences'), rows)
  for (const { row, cases } of DIFFERENCES) {
    const [request, , Deno, Bun] = row
    for (const [name, outcomes] of Object.entries(cases)) {
      for (const [runtime, cell] of Object.entries({ Deno, Bun })) {
        const [responses, after] = outcomes[runtime as 'Deno' | 'Bun'] ?? [[], 'either']
        const stated = responses.map((wanted) =>
          typeof wanted === 'string'
            ? `${PROBLEMS[wanted].status} with a problem`
            : wanted < 400
            ? `${wanted}`
            : `${wanted} without a body`
        )
        if (responses.length === 0 && after === 'closed') stated.push('closed')
        t.same(stated.filter((words) => !cell.includes(words)), [], `${request}: ${name} on ${runtime}`)
      }
    }
  }
  t.end()
})

const two = 'Content-Length: 2\r\nContent-Length: 2'
const host = 'Host: partner-api.test'

/** Heads that are refused before routing and authentication; the code and instance if the service responds. */
const rejected: readonly (readonly [line: string, fields: string, code?: string, instance?: string])[] = [
  ['GET /service/health', `${host}\r\n${two}`],
  ['OPTIONS /service/health', `${host}\r\n${two}`],
  ['POST /service/developer/verify-key', `${host}\r\n${two}`],
  ['GET /service/health', `${host}\r\nTransfer-Encoding: gzip, chunked`],
  ['GET /service/health', `${host}\r\nTransfer-Encoding: chunked,`],
  ...['a/b', '//a', 'a?b', 'a#b', 'a\\b', 'a@b', 'a|b', '"a"', 'x\\service\\health?'].map((value) =>
    ['GET /service/health', `Host: ${value}`] as const
  ),
  ['GET http://other.test?/service/health', host, 'route_not_found'],
  ['GET /service/health#a', host],
  ['CONNECT /service/health', host],
]

const template = await makeTemplate()
t.teardown(() => template.remove())
const key = template.filling.keys['demo full'].text

t.jobs = 3
for (const [name, parser] of Object.entries(parsers)) {
  t.test(name, { buffered: true }, async (t) => {
    const child = startChild(RUNTIMES.find((runtime) => runtime.name === name)!.command)
    t.teardown(() => child.end())
    const { origin } = await child.serve(template.copy(), {
      limits: { verify: { quota: 0, windowSeconds: 60 } },
    })
    const { hostname: host, port: digits } = new URL(origin)
    const port = Number(digits)

    for (const [line, fields, code = 'malformed_request', instance = '/'] of rejected) {
      const connection = await connectRaw(host, port)
      connection.write(`${line} HTTP/1.1\r\n${fields}\r\n\r\n`)
      const { status, headers, body } = await connection.answer()
      t.equal(status, code === 'malformed_request' ? 400 : 404, `${line}, ${fields}`)
      if (headers.has('x-request-id')) t.match(JSON.parse(body), { code, instance })
      connection.destroy()
    }
    await framingContract(t, { host, port, key, partner: 'demo' }, parser)
  })
}

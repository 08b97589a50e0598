/**
 * Responses of each runtime's HTTP parser to malformed and unusual messages. Workers are omitted: their parser is that of
 * Cloudflare's edge.
 */
import t from 'tap'
import { framingContract, type OwnParser } from '../contract/http/framing.ts'
import { connectRaw } from '../support/raw-connection.ts'
import { startChild } from './child.ts'
import { RUNTIMES } from './runtimes.ts'
import { makeTemplate } from './template.ts'

const served = [[200], 'either'] as const
const malformed = [['malformed_request'], 'either'] as const
const tooLarge = [['headers_too_large'], 'either'] as const
const notFound = [['route_not_found'], 'either'] as const

const parsers: Readonly<Record<string, OwnParser | undefined>> = {
  'Node 22': undefined,
  'Node 24': undefined,
  'Node 26': undefined,
  // What Bun's parser rejects never reaches the service, so it gets no problem body.
  Bun: {
    refusesAlone: true,
    differences: {
      'empty lines before a request (RFC 9112 §2.2)': malformed,
      // The limit of a head is 16 KiB (`bun --max-http-header-size` allows more) and about 200 fields.
      'headers of 17 KB': tooLarge,
      'headers at the limit': tooLarge,
      'a thousand headers': tooLarge,
      'asterisk form': malformed,
      // Bun parses it as a URL.
      'a target with a high byte': notFound,
      'chunks with a trailer': served,
      'twenty thousand trailers': served,
      'a trailer of 140 KB': served,
    },
  },
  // Its `node:http` uses Node's parser, but limits each trailer separately and does not limit chunk extensions.
  Deno: {
    refusesAlone: false,
    differences: {
      'a chunk extension of 1 MB': [[200], 'kept'],
      'twenty thousand trailers': [[200], 'kept'],
    },
  },
}

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

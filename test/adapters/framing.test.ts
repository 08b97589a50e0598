/**
 * What Bun and Deno answer to bytes that are no request. What Bun's parser refuses never reaches the service, so that it
 * gets no problem for a body; nothing that is to be refused is served, but for what is named here. Workers are not asked:
 * Cloudflare's edge stands before them, and its parser is its own.
 */
import t from 'tap'
import { framingContract, type OwnParser } from '../contract/http/framing.ts'
import { startChild } from '../runtimes/child.ts'
import { RUNTIMES } from '../runtimes/runtimes.ts'
import { makeTemplate } from '../runtimes/template.ts'
import { connectRaw } from '../support/raw-connection.ts'

const served = [[200], 'either'] as const
const malformed = [['malformed_request'], 'either'] as const
const tooLarge = [['headers_too_large'], 'either'] as const
const nowhere = [['route_not_found'], 'either'] as const

const parsers: Readonly<Record<string, OwnParser>> = {
  Bun: {
    refusesAlone: true,
    differences: {
      'empty lines before a request (RFC 9112 §2.2)': malformed,
      // A head has 16 KiB (`bun --max-http-header-size` allows more) and about 200 fields.
      'headers of 17 KB': tooLarge,
      'headers at the limit': tooLarge,
      'a thousand headers': tooLarge,
      // What no route is, when it has become a URL.
      'authority form': nowhere,
      'a target with a high byte': nowhere,
      'chunks with a trailer': served,
      'twenty thousand trailers': served,
      'a trailer of 140 KB': served,
    },
  },
  // Its `node:http` has Node's parser, but counts each trailer by itself, and no chunk extensions.
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

/** Heads that are nobody's request, with no regard to what is asked and by whom; the answer's code where the service gives it. */
const refused: readonly (readonly [
  name: string,
  line: string,
  fields: string,
  code?: string,
  instance?: string,
])[] = [
  ['two equal lengths', 'GET /service/health', `${host}\r\n${two}`],
  ['two equal lengths, of OPTIONS', 'OPTIONS /service/health', `${host}\r\n${two}`],
  ['two equal lengths, of nobody', 'POST /service/developer/verify-key', `${host}\r\n${two}`],
  ['a coding before the chunks', 'GET /service/health', `${host}\r\nTransfer-Encoding: gzip, chunked`],
  ['a comma behind the chunks', 'GET /service/health', `${host}\r\nTransfer-Encoding: chunked,`],
  ...['a/b', '//a', 'a?b', 'a#b', 'a\\b', 'a@b', 'a|b', '"a"', 'x\\service\\health?'].map((value) =>
    [`the Host ${value}`, 'GET /service/health', `Host: ${value}`] as const
  ),
  ['a path in a query', 'GET http://other.test?/service/health', host, 'route_not_found'],
]

const template = await makeTemplate()
t.teardown(() => template.remove())

for (const name of ['Node 26', 'Bun', 'Deno']) {
  await t.test(`what nobody serves, ${name}`, async (t) => {
    const child = startChild(RUNTIMES.find((runtime) => runtime.name === name)!.command)
    t.teardown(() => child.end())
    const { hostname, port } = new URL((await child.serve(template.copy(), {})).origin)
    for (const [what, line, fields, code = 'malformed_request', instance = '/'] of refused) {
      const connection = await connectRaw(hostname, Number(port))
      connection.write(`${line} HTTP/1.1\r\n${fields}\r\n\r\n`)
      const { status, headers, body } = await connection.answer()
      t.equal(status, code === 'malformed_request' ? 400 : 404, what)
      if (headers.has('x-request-id')) t.match(JSON.parse(body), { code, instance }, what)
      connection.destroy()
    }
  })
}

for (const [name, parser] of Object.entries(parsers)) {
  await t.test(name, async (t) => {
    const child = startChild(RUNTIMES.find((runtime) => runtime.name === name)!.command)
    t.teardown(() => child.end())
    const { origin } = await child.serve(template.copy(), {
      limits: { verify: { quota: 0, windowSeconds: 60 } },
    })
    const { hostname: host, port } = new URL(origin)
    const key = template.filling.keys['demo full'].text
    await framingContract(t, { host, port: Number(port), key, partner: 'demo' }, parser)
  })
}

/**
 * Responses to malformed, unusual and oversized HTTP/1.1 messages. They are sent through raw sockets, because HTTP
 * clients refuse to send most of them. Every case is sent in one piece and again in two halves.
 */
import { type ProblemCode, PROBLEMS } from '../../../core/http/problem.ts'
import { connectRaw, type RawAnswer } from '../../support/raw-connection.ts'
import type { TestContext } from '../store/suites.ts'

/** A running service, and a valid key. */
export interface FramingTarget {
  readonly host: string
  readonly port: number
  readonly key: string
  readonly partner: string
}

/** The expected responses in order, and whether the connection stays open. */
export type Outcome = readonly [
  responses: readonly (number | ProblemCode)[],
  after: 'kept' | 'closed' | 'either',
]

/** A server with an HTTP parser other than Node's. */
export interface OwnParser {
  /** Whether it refuses messages without the service, with an empty response or by closing the connection. */
  readonly refusesAlone: boolean
  /** Other differences, by case name. An error status is one without a body. */
  readonly differences: Readonly<Record<string, Outcome>>
}

type Wanted = number | ProblemCode

/** By default, a problem closes the connection, and a status does not. */
type Case = readonly [name: string, bytes: string, wanted: Wanted | readonly Wanted[], after?: Outcome[1]]

export async function framingContract(
  t: TestContext,
  { host, port, key, partner }: FramingTarget,
  ownParser?: OwnParser,
): Promise<void> {
  const line = (method = 'GET', target = '/service/health', version = 'HTTP/1.1') =>
    `${method} ${target} ${version}\r\n`
  const named = 'Host: partner-api.test\r\n'
  const at = (target: string, method?: string) => `${line(method, target)}${named}\r\n`
  const good = at('/service/health')
  const withFields = (...fields: string[]) =>
    `${line()}${named}${fields.map((field) => `${field}\r\n`).join('')}\r\n`
  const content = JSON.stringify({ partner })
  const signup = JSON.stringify({ partner, email: 'jane@example.com', name: 'Jane' })
  const chunk = `${content.length.toString(16)}\r\n${content}\r\n`
  const posts = (...fields: string[]) =>
    `${line('POST', '/service/developer/verify-key')}${named}Authorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`
  const chunked = posts('Transfer-Encoding: chunked')
  const sized = posts(`Content-Length: ${content.length}`)
  const targetOf = (bytes: number) => `/service/health?${'a'.repeat(bytes - '/service/health?'.length)}`
  // A header line counts as name, colon, space, value and CRLF.
  const fill = (bytes: number) => `X-Fill: ${'a'.repeat(bytes - `${named}X-Fill: \r\n`.length)}`
  const bad = 'malformed_request'

  const cases: Case[] = [
    ['a request', good, 200],
    ['empty lines before a request (RFC 9112 §2.2)', `\r\n\r\n${good}`, 200],
    ['requests in a row', good + sized + content + good, [200, 200, 200], 'kept'],
    ['a request that closes', withFields('Connection: close'), 200, 'closed'],
    ['bytes behind a request that closes', withFields('Connection: close') + good, 200, 'closed'],
    ['HTTP/1.0', `${line('GET', '/service/health', 'HTTP/1.0')}\r\n`, 200, 'closed'],

    ['two equal Hosts', withFields(named.trim()), bad],
    ['two Hosts', withFields('Host: other.test'), bad],
    ['no Host', `${line()}\r\n`, bad],
    ['a Host with a space', `${line()}Host: a b\r\n\r\n`, bad],
    ['two Authorizations', withFields('Authorization: Basic YTpi', 'Authorization: Basic YTpi'), 200],
    [
      'two Authorizations where one is needed',
      posts(`Authorization: Bearer ${key}`, `Content-Length: ${content.length}`) + content,
      'ambiguous_credentials',
      'kept',
    ],
    [
      'two key headers where one is needed',
      posts(
        `X-Service-Partner-Key: ${key}`,
        `x-service-partner-key: ${key}`,
        `Content-Length: ${content.length}`,
      ) + content,
      'ambiguous_credentials',
      'kept',
    ],

    ['no method that HTTP has', `FOO ${good.slice(4)}`, bad],
    ['a method that is no token', `G@T ${good.slice(4)}`, bad],
    ['a method in lower case', good.replace('GET', 'get'), bad],
    ['HTTP/0.9', 'GET /service/health\r\n\r\n', bad],
    ['HTTP/1.2', good.replace('/1.1', '/1.2'), bad],
    ['HTTP/2.0 in letters', good.replace('/1.1', '/2.0'), bad],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', bad],
    ['the hello of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', bad],
    ['garbage behind a request', `${good}\x00\x01\x02`, [200, bad], 'closed'],

    ['bare LF', good.replaceAll('\r\n', '\n'), bad],
    ['one bare LF', good.replace('test\r\n', 'test\n'), bad],
    ['a bare CR', withFields('X-A: a\rb'), bad],
    ['a folded line', withFields('X-A: a', ' b'), bad],
    ['a folded first line', good.replace('Host', ' Host'), bad],
    ['a NUL in a value', withFields('X-A: a\0b'), bad],
    ['a control character in a value', withFields('X-A: a\x01b'), bad],
    ['a space before the colon', withFields('X-A : a'), bad],
    ['a name that is no token', withFields('X(A: a'), bad],
    ['no name', withFields(': a'), bad],
    ['no colon', withFields('X-A'), bad],

    ['absolute form', at('http://other.test/service/health'), 200],
    ['absolute form without a path', at('http://other.test'), 'route_not_found', 'kept'],
    ['absolute form of another scheme', at('ftp://other.test/'), bad],
    ['asterisk form', at('*', 'OPTIONS'), 204, 'kept'],
    ['asterisk form without OPTIONS', at('*'), bad],
    ['authority form', at('other.test:443', 'CONNECT'), bad],
    ['a target with a control character', at('/a\x01'), bad],
    ['dot segments', at('/service/x/../health'), 'route_not_found', 'kept'],
    ['encoded dot segments', at('/service/x/%2e%2E/health'), 'route_not_found', 'kept'],
    ['a backslash in a target', at('/service\\health'), 'route_not_found', 'kept'],
    ['a target with a high byte', at('/\xe9'), bad],

    ['a target at the limit', at(targetOf(8192)), 'invalid_parameter', 'kept'],
    ['a target over the limit', at(targetOf(8193)), 'uri_too_long'],
    ['a target of 100 KB', at(targetOf(100_000)), 'uri_too_long'],
    ['a target of 1 MB', at(targetOf(1_000_000)), 'uri_too_long'],
    ['headers of 17 KB', withFields(fill(17_000)), 200],
    ['headers at the limit', withFields(fill(32_768)), 200],
    ['headers over the limit', withFields(fill(32_769)), 'headers_too_large'],
    ['headers of 100 KB', withFields(fill(100_000)), 'headers_too_large'],
    ['headers of 200 KB', withFields(fill(200_000)), 'headers_too_large'],
    ['a thousand headers', withFields(...Array(1000).fill('A: b')), 200],
    ['ten thousand headers', withFields(...Array(10_000).fill('A: b')), 'headers_too_large'],
    [
      'target and headers over the limit',
      `${line('GET', targetOf(9000))}${named}${fill(40_000)}\r\n\r\n`,
      'uri_too_long',
    ],

    ['a body', sized + content, 200],
    ['a body in chunks', `${chunked}${chunk}0\r\n\r\n`, 200],
    ['a chunk with an extension', `${chunked}${chunk.replace('\r', ';a="b"\r')}0\r\n\r\n`, 200],
    [
      'a chunk extension of 1 MB',
      `${chunked}${chunk.replace('\r', `;${'a'.repeat(1_000_000)}\r`)}0\r\n\r\n`,
      'body_too_large',
    ],
    ['chunks with a trailer', `${chunked}${chunk}0\r\nX-A: b\r\n\r\n`, 200],
    [
      'twenty thousand trailers',
      `${chunked}${chunk}0\r\n${'a: b\r\n'.repeat(20_000)}\r\n`,
      'headers_too_large',
    ],
    ['a trailer of 140 KB', `${chunked}${chunk}0\r\na: ${'b'.repeat(140_000)}\r\n\r\n`, 'headers_too_large'],
    ['a body to a GET', withFields('Content-Length: 3') + 'abc', 200],
    ['chunks to a GET', withFields('Transfer-Encoding: chunked') + '3\r\nabc\r\n0\r\n\r\n', 200, 'either'],
    ['two lengths', posts('Content-Length: 3', 'Content-Length: 4') + content, bad],
    ['two equal lengths', posts('Content-Length: 3', 'Content-Length: 3') + content, bad],
    ['a list of equal lengths', posts('Content-Length: 3, 3') + content, bad],
    ['a signed length', posts('Content-Length: +3') + content, bad],
    ['an empty length', posts('Content-Length:') + content, bad],
    ['a length beyond numbers', posts(`Content-Length: ${'9'.repeat(30)}`) + content, bad],
    ['a length and chunks', `${posts('Content-Length: 3', 'Transfer-Encoding: chunked')}0\r\n\r\n`, bad],
    ['chunks in HTTP/1.0', chunked.replace('/1.1', '/1.0') + chunk, bad],
    ['a coding before the chunks', posts('Transfer-Encoding: gzip, chunked') + chunk, bad],
    ['a coding behind the chunks', posts('Transfer-Encoding: chunked, gzip') + chunk, bad],
    ['no chunks', posts('Transfer-Encoding: identity') + content, bad],
    ['almost chunks', posts('Transfer-Encoding: xchunked') + chunk, bad],
    ['chunks twice', posts('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + chunk, bad],
    ['a chunk size that is none', `${chunked}zz\r\n`, bad],
    ['a chunk size with a sign', `${chunked}+3\r\nabc\r\n0\r\n\r\n`, bad],
    ['a chunk size in C', `${chunked}0x3\r\nabc\r\n0\r\n\r\n`, bad],
    ['a chunk size beyond numbers', `${chunked}${'f'.repeat(17)}\r\n`, bad],
    ['a chunk that ends with a bare LF', `${chunked}3\nabc\r\n0\r\n\r\n`, bad],
    ['a chunk longer than it says', `${chunked}3\r\nabcdef\r\n0\r\n\r\n`, bad],
    ['a length at the limit', posts('Content-Length: 32768') + content.padEnd(32_768), 200],
    ['a length over the limit', posts('Content-Length: 32769') + 'a', 'body_too_large', 'either'],
    ['a length of 4 GB', posts('Content-Length: 4294967296') + 'a', 'body_too_large'],
    ['chunks over the limit', `${chunked}${`1000\r\n${' '.repeat(4096)}\r\n`.repeat(9)}`, 'body_too_large'],
    ['a body of 10 MB', posts('Content-Length: 10000000') + ' '.repeat(10_000_000), 'body_too_large'],

    [
      'a bare Idempotency-Key with a comma',
      `${posts('Idempotency-Key: a, b', `Content-Length: ${signup.length}`)}${signup}`
        .replace('/developer/verify-key', '/partner/signups'),
      201,
    ],

    [
      'an expectation that is met',
      `${sized.slice(0, -2)}Expect: 100-continue\r\n\r\n${content}`,
      [100, 200],
      'kept',
    ],
    ['an expectation that is not understood', withFields('Expect: the unexpected'), 200],
    ['an upgrade', withFields('Connection: Upgrade', 'Upgrade: websocket'), 200, 'closed'],
    [
      'bytes behind an upgrade',
      withFields('Connection: keep-alive, upgrade', 'Upgrade: a') + good,
      200,
      'closed',
    ],
    [
      "the upgrade that Java's client offers with every first request",
      posts('Connection: Upgrade', 'Upgrade: h2c', `Content-Length: ${content.length}`) + content,
      200,
      'closed',
    ],
  ]

  async function violations(
    name: string,
    bytes: Buffer,
    [responses, after]: Outcome,
    halves: boolean,
  ): Promise<string[]> {
    const found: string[] = []
    const connection = await connectRaw(host, port)
    const cut = halves ? bytes.length >> 1 : bytes.length
    connection.write(bytes.subarray(0, cut))
    if (halves) await connection.flushed()
    if (halves) connection.write(bytes.subarray(cut))
    try {
      for (const wanted of responses) {
        if (ownParser?.refusesAlone && Number(wanted) >= 400) {
          const response = await connection.answer().catch(() => undefined)
          const isAlone = response?.status === wanted && response.body === '' &&
            !response.headers.has('x-request-id')
          // A server that closes with unread input resets the connection, which may overtake its response.
          if (!isAlone && (response || bytes.length < 16_384)) found.push(`${wanted} got ${response?.status}`)
        } else if (ownParser?.refusesAlone && typeof wanted === 'string') {
          const response = await connection.answer().catch(() => undefined)
          found.push(...refusalViolations(response, wanted))
        } else found.push(...responseViolations(await connection.answer(), wanted))
      }
      if (after === 'kept') {
        connection.write(good)
        if ((await connection.answer()).status !== 200) found.push('the connection cannot be used again')
      }
      if (after === 'closed' && (!ownParser?.refusesAlone || Object.hasOwn(ownParser.differences, name))) {
        const ended = connection.ended()
        const rest = await (ownParser?.refusesAlone ? ended.catch(() => '') : ended)
        if (rest !== '') found.push('more was sent before the connection was closed')
      }
    } catch (error) {
      found.push(String(error))
    }
    connection.destroy()
    return found
  }

  for (const halves of [false, true]) {
    await Promise.all(
      cases.map(async ([name, bytes, wanted, after = typeof wanted === 'string' ? 'closed' : 'kept']) => {
        const outcome = ownParser?.differences[name] ?? [[wanted].flat(), after] as const
        const found = await violations(name, Buffer.from(bytes, 'latin1'), outcome, halves)
        t.strictSame(found, [], halves ? `${name}, in halves` : name)
      }),
    )
  }
}

/** Deviations of a refusal by the service, or by the server without it. */
function refusalViolations(response: RawAnswer | undefined, wanted: ProblemCode): string[] {
  if (response === undefined) return []
  if (response.headers.has('x-request-id')) return responseViolations(response, wanted)
  const isRefused = [400, 413, 431, 505].includes(response.status) && response.body === ''
  return isRefused ? [] : [`${wanted} got ${JSON.stringify(response)}`]
}

/** Deviations of a response of the service. */
function responseViolations({ status, headers, body }: RawAnswer, wanted: number | ProblemCode): string[] {
  if (wanted === 100) return status === 100 ? [] : [`${status} instead of 100`]
  const requestId = headers.get('x-request-id') ?? ''
  const found: string[] = []
  if (!/^req_/.test(requestId)) found.push('no request id')
  if (!headers.has('date')) found.push('no date (RFC 9110 §6.6.1)')
  if (headers.has('server') || headers.has('x-powered-by')) found.push('a field names the server software')
  if (typeof wanted === 'number') {
    return status === wanted ? found : [...found, `${status} instead of ${wanted}`]
  }
  const { code, request_id } = JSON.parse(body)
  const actual = [code, status, headers.get('content-type'), request_id].join()
  const expected = [wanted, PROBLEMS[wanted].status, 'application/problem+json', requestId].join()
  return actual === expected ? found : [...found, `${actual} instead of ${expected}`]
}

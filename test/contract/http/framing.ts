/**
 * What the service answers to bytes that are no request, almost none, or more of one than it takes. Raw sockets,
 * because HTTP clients do not send most of this. Every case is sent at once and again in two halves.
 */
import { type ProblemCode, PROBLEMS } from '../../../core/http/problem.ts'
import { connectRaw, type RawAnswer, type RawConnection } from '../../support/raw-connection.ts'
import type { Tester } from '../store/suites.ts'

/** A running service, and a key that verify-key says yes to. */
export interface FramingTarget {
  readonly host: string
  readonly port: number
  readonly key: string
  readonly partner: string
}

/** The answers that bytes get in order, and whether the connection can be used afterwards. */
export type Outcome = readonly [
  answers: readonly (number | ProblemCode)[],
  after: 'kept' | 'closed' | 'either',
]

/** A server whose parser is not Node's. */
export interface OwnParser {
  /** Whether it answers by itself what it refuses, with a status and no body or not at all. */
  readonly refusesAlone: boolean
  /** What else it does in its own way, by the names of cases. */
  readonly differences: Readonly<Record<string, Outcome>>
}

/** What a case sends, and what comes of it. */
type Case = readonly [name: string, bytes: string, ...Outcome]

export async function framingContract(
  t: Tester,
  { host, port, key, partner }: FramingTarget,
  ownParser?: OwnParser,
): Promise<void> {
  const line = (method = 'GET', target = '/service/health', version = 'HTTP/1.1') =>
    `${method} ${target} ${version}\r\n`
  const named = 'Host: partner-api.test\r\n'
  const good = `${line()}${named}\r\n`
  const with_ = (...fields: string[]) =>
    `${line()}${named}${fields.map((field) => `${field}\r\n`).join('')}\r\n`
  const content = JSON.stringify({ partner })
  const chunk = `${content.length.toString(16)}\r\n${content}\r\n`
  const posts = (...fields: string[]) =>
    `${line('POST', '/service/developer/verify-key')}${named}Authorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`
  const chunked = posts('Transfer-Encoding: chunked')
  const sized = posts(`Content-Length: ${content.length}`)
  const targetOf = (bytes: number) => `/service/health?${'a'.repeat(bytes - '/service/health?'.length)}`
  // A line counts as name, colon, space, value and CRLF.
  const fill = (bytes: number) => `X-Fill: ${'a'.repeat(bytes - `${named}X-Fill: \r\n`.length)}`
  const bad = ['malformed_request'] as const

  const cases: Case[] = [
    ['a request', good, [200], 'kept'],
    ['empty lines before a request (RFC 9112 §2.2)', `\r\n\r\n${good}`, [200], 'kept'],
    ['requests in a row', good + sized + content + good, [200, 200, 200], 'kept'],
    ['a request that closes', with_('Connection: close'), [200], 'closed'],
    ['bytes behind a request that closes', with_('Connection: close') + good, [200], 'closed'],
    ['HTTP/1.0', `${line('GET', '/service/health', 'HTTP/1.0')}\r\n`, [200], 'closed'],

    ['two equal Hosts', with_(named.trim()), bad, 'closed'],
    ['two Hosts', with_('Host: other.test'), bad, 'closed'],
    ['no Host', `${line()}\r\n`, bad, 'closed'],
    ['a Host with a space', `${line()}Host: a b\r\n\r\n`, bad, 'closed'],
    ['two Authorizations', with_('Authorization: Basic YTpi', 'Authorization: Basic YTpi'), [200], 'kept'],
    [
      'two Authorizations where one is needed',
      posts(`Authorization: Bearer ${key}`, `Content-Length: ${content.length}`) + content,
      ['ambiguous_credentials'],
      'kept',
    ],
    [
      'two key headers where one is needed',
      posts(
        `X-Service-Partner-Key: ${key}`,
        `x-service-partner-key: ${key}`,
        `Content-Length: ${content.length}`,
      ) + content,
      ['ambiguous_credentials'],
      'kept',
    ],

    ['no method that HTTP has', `FOO ${good.slice(4)}`, bad, 'closed'],
    ['a method that is no token', `G@T ${good.slice(4)}`, bad, 'closed'],
    ['a method in lower case', good.replace('GET', 'get'), bad, 'closed'],
    ['HTTP/0.9', 'GET /service/health\r\n\r\n', bad, 'closed'],
    ['HTTP/1.2', good.replace('/1.1', '/1.2'), bad, 'closed'],
    ['HTTP/2.0 in letters', good.replace('/1.1', '/2.0'), bad, 'closed'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', bad, 'closed'],
    ['the hello of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', bad, 'closed'],
    ['garbage behind a request', `${good}\x00\x01\x02`, [200, ...bad], 'closed'],

    ['bare LF', good.replaceAll('\r\n', '\n'), bad, 'closed'],
    ['one bare LF', good.replace('test\r\n', 'test\n'), bad, 'closed'],
    ['a bare CR', with_('X-A: a\rb'), bad, 'closed'],
    ['a folded line', with_('X-A: a', ' b'), bad, 'closed'],
    ['a folded first line', good.replace('Host', ' Host'), bad, 'closed'],
    ['a NUL in a value', with_('X-A: a\0b'), bad, 'closed'],
    ['a control character in a value', with_('X-A: a\x01b'), bad, 'closed'],
    ['a space before the colon', with_('X-A : a'), bad, 'closed'],
    ['a name that is no token', with_('X(A: a'), bad, 'closed'],
    ['no name', with_(': a'), bad, 'closed'],
    ['no colon', with_('X-A'), bad, 'closed'],

    ['absolute form', `${line('GET', 'http://other.test/service/health')}${named}\r\n`, [200], 'kept'],
    ['absolute form without a path', `${line('GET', 'http://other.test')}${named}\r\n`, [
      'route_not_found',
    ], 'kept'],
    ['absolute form of another scheme', `${line('GET', 'ftp://other.test/')}${named}\r\n`, bad, 'closed'],
    ['asterisk form', `${line('OPTIONS', '*')}${named}\r\n`, bad, 'closed'],
    ['authority form', `${line('CONNECT', 'other.test:443')}${named}\r\n`, bad, 'closed'],
    ['a target with a control character', `${line('GET', '/a\x01')}${named}\r\n`, bad, 'closed'],
    ['a target with a high byte', `${line('GET', '/\xe9')}${named}\r\n`, bad, 'closed'],

    ['a target at the limit', `${line('GET', targetOf(8192))}${named}\r\n`, ['invalid_parameter'], 'kept'],
    ['a target over the limit', `${line('GET', targetOf(8193))}${named}\r\n`, ['uri_too_long'], 'closed'],
    ['a target of 100 KB', `${line('GET', targetOf(100_000))}${named}\r\n`, ['uri_too_long'], 'closed'],
    ['a target of 1 MB', `${line('GET', targetOf(1_000_000))}${named}\r\n`, ['uri_too_long'], 'closed'],
    ['headers of 17 KB', with_(fill(17_000)), [200], 'kept'],
    ['headers at the limit', with_(fill(32_768)), [200], 'kept'],
    ['headers over the limit', with_(fill(32_769)), ['headers_too_large'], 'closed'],
    ['headers of 100 KB', with_(fill(100_000)), ['headers_too_large'], 'closed'],
    ['headers of 200 KB', with_(fill(200_000)), ['headers_too_large'], 'closed'],
    ['a thousand headers', with_(...Array(1000).fill('A: b')), [200], 'kept'],
    ['ten thousand headers', with_(...Array(10_000).fill('A: b')), ['headers_too_large'], 'closed'],
    [
      'target and headers over the limit',
      `${line('GET', targetOf(9000))}${named}${fill(40_000)}\r\n\r\n`,
      ['uri_too_long'],
      'closed',
    ],

    ['a body', sized + content, [200], 'kept'],
    ['a body in chunks', `${chunked}${chunk}0\r\n\r\n`, [200], 'kept'],
    ['a chunk with an extension', `${chunked}${chunk.replace('\r', ';a="b"\r')}0\r\n\r\n`, [200], 'kept'],
    [
      'a chunk extension of 1 MB',
      `${chunked}${chunk.replace('\r', `;${'a'.repeat(1_000_000)}\r`)}0\r\n\r\n`,
      ['body_too_large'],
      'closed',
    ],
    ['chunks with a trailer', `${chunked}${chunk}0\r\nX-A: b\r\n\r\n`, [200], 'kept'],
    [
      'twenty thousand trailers',
      `${chunked}${chunk}0\r\n${'a: b\r\n'.repeat(20_000)}\r\n`,
      ['headers_too_large'],
      'closed',
    ],
    [
      'a trailer of 140 KB',
      `${chunked}${chunk}0\r\na: ${'b'.repeat(140_000)}\r\n\r\n`,
      ['headers_too_large'],
      'closed',
    ],
    ['a body to a GET', with_('Content-Length: 3') + 'abc', [200], 'kept'],
    ['chunks to a GET', with_('Transfer-Encoding: chunked') + '3\r\nabc\r\n0\r\n\r\n', [200], 'either'],
    ['two lengths', posts('Content-Length: 3', 'Content-Length: 4') + content, bad, 'closed'],
    ['two equal lengths', posts('Content-Length: 3', 'Content-Length: 3') + content, bad, 'closed'],
    ['a list of equal lengths', posts('Content-Length: 3, 3') + content, bad, 'closed'],
    ['a signed length', posts('Content-Length: +3') + content, bad, 'closed'],
    ['an empty length', posts('Content-Length:') + content, bad, 'closed'],
    ['a length beyond numbers', posts(`Content-Length: ${'9'.repeat(30)}`) + content, bad, 'closed'],
    [
      'a length and chunks',
      `${posts('Content-Length: 3', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      bad,
      'closed',
    ],
    ['chunks in HTTP/1.0', chunked.replace('/1.1', '/1.0') + chunk, bad, 'closed'],
    ['a coding before the chunks', posts('Transfer-Encoding: gzip, chunked') + chunk, bad, 'closed'],
    ['a coding behind the chunks', posts('Transfer-Encoding: chunked, gzip') + chunk, bad, 'closed'],
    ['no chunks', posts('Transfer-Encoding: identity') + content, bad, 'closed'],
    ['almost chunks', posts('Transfer-Encoding: xchunked') + chunk, bad, 'closed'],
    [
      'chunks twice',
      posts('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + chunk,
      bad,
      'closed',
    ],
    ['a chunk size that is none', `${chunked}zz\r\n`, bad, 'closed'],
    ['a chunk size with a sign', `${chunked}+3\r\nabc\r\n0\r\n\r\n`, bad, 'closed'],
    ['a chunk size in C', `${chunked}0x3\r\nabc\r\n0\r\n\r\n`, bad, 'closed'],
    ['a chunk size beyond numbers', `${chunked}${'f'.repeat(17)}\r\n`, bad, 'closed'],
    ['a chunk that ends with a bare LF', `${chunked}3\nabc\r\n0\r\n\r\n`, bad, 'closed'],
    ['a chunk longer than it says', `${chunked}3\r\nabcdef\r\n0\r\n\r\n`, bad, 'closed'],
    ['a length at the limit', posts('Content-Length: 32768') + content.padEnd(32_768), [200], 'kept'],
    ['a length over the limit', posts('Content-Length: 32769') + 'a', ['body_too_large'], 'either'],
    ['a length of 4 GB', posts('Content-Length: 4294967296') + 'a', ['body_too_large'], 'closed'],
    [
      'chunks over the limit',
      `${chunked}${`1000\r\n${' '.repeat(4096)}\r\n`.repeat(9)}`,
      ['body_too_large'],
      'closed',
    ],
    [
      'a body of 10 MB',
      posts('Content-Length: 10000000') + ' '.repeat(10_000_000),
      ['body_too_large'],
      'closed',
    ],

    ['an expectation that is met', `${sized.slice(0, -2)}Expect: 100-continue\r\n\r\n${content}`, [
      100,
      200,
    ], 'kept'],
    ['an expectation that is not understood', with_('Expect: the unexpected'), [200], 'kept'],
    ['an upgrade', with_('Connection: Upgrade', 'Upgrade: websocket'), [200], 'closed'],
    [
      'bytes behind an upgrade',
      with_('Connection: keep-alive, upgrade', 'Upgrade: a') + good,
      [200],
      'closed',
    ],
    [
      "the upgrade that Java's client offers with every first request",
      posts('Connection: Upgrade', 'Upgrade: h2c', `Content-Length: ${content.length}`) + content,
      [200],
      'closed',
    ],
  ]

  const again = async (connection: RawConnection) => {
    connection.write(good)
    return (await connection.answer()).status
  }

  const refusesAlone = ownParser?.refusesAlone === true
  for (const [name, bytes, ...contract] of cases) {
    const [answers, after] = ownParser?.differences[name] ?? contract
    for (const halves of [false, true]) {
      await t.test(halves ? `${name}, in halves` : name, async (t) => {
        const connection = await connectRaw(host, port)
        const all = Buffer.from(bytes, 'latin1')
        const cut = halves ? all.length >> 1 : all.length
        connection.write(all.subarray(0, cut))
        if (halves) await connection.flushed()
        if (halves) connection.write(all.subarray(cut))
        for (const wanted of answers) {
          if (refusesAlone && typeof wanted === 'string') await refused(t, connection, wanted)
          else check(t, await connection.answer(), wanted)
        }
        if (after === 'kept') t.equal(await again(connection), 200, 'the connection is kept')
        if (after === 'closed' && !refusesAlone) {
          t.equal(await connection.ended(), '', 'the connection is closed, and nothing else sent')
        }
        connection.destroy()
      })
    }
  }
}

/** A refusal by the service, or by the server without it. */
async function refused(t: Tester, connection: RawConnection, wanted: ProblemCode): Promise<void> {
  const answer = await connection.answer().catch(() => undefined)
  if (answer?.headers.has('x-request-id')) return check(t, answer, wanted)
  t.ok(
    answer === undefined || [400, 413, 431, 505].includes(answer.status),
    `${wanted}: refused by the server`,
  )
  t.equal(answer?.body ?? '', '', 'which says nothing more')
}

/** An answer that the service made, whatever made it necessary. */
function check(t: Tester, { status, headers, body }: RawAnswer, wanted: number | ProblemCode): void {
  if (wanted === 100) return void t.equal(status, 100)
  t.ok(/^req_/.test(headers.get('x-request-id') ?? ''), 'has a request id')
  t.ok(headers.has('date'), 'has a date (RFC 9110 §6.6.1)')
  t.ok(!headers.has('server') && !headers.has('x-powered-by'), 'names no software')
  if (typeof wanted === 'number') return void t.equal(status, wanted)
  const problem = JSON.parse(body)
  t.equal(problem.code, wanted)
  t.equal(status, PROBLEMS[wanted].status)
  t.equal(headers.get('content-type'), 'application/problem+json')
  t.equal(problem.request_id, headers.get('x-request-id'))
}

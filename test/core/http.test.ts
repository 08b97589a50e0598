/** What the parts of `core/http` return for values that the contract sees only in part. */
import t from 'tap'
import { readBody } from '../../core/http/body.ts'
import { parseClientAddress } from '../../core/http/client-address.ts'
import { Problem, problemDocument } from '../../core/http/problem.ts'
import { readPartner, readQuery, valueError } from '../../core/http/query.ts'
import { formatValue, redactKeys, redactPath } from '../../core/http/redact.ts'
import { forge } from '../contract/http/forgery.ts'

const key = forge('partner_live', '0'.repeat(12))
const json = ['content-type', 'application/json'] as const

t.test('a problem has the title of its code, and keeps its cause for the log', (t) => {
  const titles = {
    uri_too_long: 'URI too long',
    internal: 'Internal error',
    key_missing: 'Key missing',
    unsupported_media_type: 'Unsupported media type',
  } as const
  for (const [code, title] of Object.entries(titles)) {
    t.match(problemDocument(code as keyof typeof titles, {}, 'https://a.example', '/', 'req_1'), {
      title,
      code,
    })
  }
  const cause = new Error('no')
  t.match(new Problem('internal', { detail: 'Why' }, cause), { name: 'Problem', message: 'Why', cause })
  t.equal(new Problem('key_missing').message, 'The request carries no key.')
  t.end()
})

t.test('a refused body has a detail that says why', (t) => {
  const cases:
    readonly (readonly [body: string, field: readonly [name: string, value: string], detail: string])[] = [
      ['{}', ['content-encoding', 'gzip'], 'The body must not have a Content-Encoding.'],
      ['{}', ['content-type', 'text/plain'], 'The body must be application/json in UTF-8.'],
      ['{', json, 'The body is not JSON.'],
      ['{"a":1,"a":1}', json, 'The body contains an object with duplicate member names.'],
      ['"\xff"', json, 'The body is not UTF-8.'],
    ]
  for (const [body, [name, value], detail] of cases) {
    const fields: Record<string, string> = { 'content-type': 'application/json', [name]: value }
    const bytes = Buffer.from(body, 'latin1')
    const header = (name: string) => fields[name]
    const request = { method: 'POST', target: '/', header, body: () => bytes, address: undefined }
    t.throws(() => readBody(request), { name: 'Problem', message: detail })
  }
  t.end()
})

t.test('a refused parameter has a detail that says why', (t) => {
  const query = readQuery(`a=1&a=${key}&b=%zz&b=%&c=1&c=2&c=3&&d`)
  t.strictSame(query.values.get('b'), ['', ''])
  t.strictSame(query.values.get('d'), [''])
  t.equal(query.values.size, 4)
  const error = (name: string, most: number) => valueError(query, name, query.values.get(name)!, most)
  t.equal(error('a', 2), 'looks like a key, which must not be sent in a URL')
  t.equal(error('b', 2), 'is not percent-encoded UTF-8')
  t.equal(error('c', 1), 'must not be repeated')
  t.equal(error('c', 2), 'must not have more than 2 values')
  t.equal(error('c', 3), undefined)
  const errors = [{ parameter: 'partner', detail: 'must not be repeated' }]
  t.throws(() => readPartner(readQuery('partner=a&partner=b')), {
    code: 'invalid_parameter',
    members: { errors },
  })
  t.equal(readPartner(readQuery('a=b')), undefined)
  t.end()
})

t.test('limits count by the address of a client, or by its /64', (t) => {
  // Addresses are kept by their text, so each run has others.
  const part = () => 1 + Math.floor(Math.random() * 9999)
  for (let round = 0; round < 3; round++) {
    const v4 = `198.18.${part() % 256}.${part() % 256}`
    const v6 = `2001:db8:${part()}:${part()}::${part()}`
    const network = v6.split('::')[0]
    for (const [hop, text] of [[`[${v4}]`, v4], [`[${v6}%eth0]:4711`, v6]] as const) {
      const first = parseClientAddress(hop)
      t.equal(first.text, text, hop)
      t.equal(parseClientAddress(hop), first, 'it is kept')
    }
    const subject = (hop: string) => parseClientAddress(hop).subject
    t.equal(subject(`${network}::1`), subject(v6), 'the /64 counts')
    t.not(subject(`2001:db9:${part()}:${part()}::1`), subject(v6))
    t.not(subject(`198.19.${part() % 256}.1`), subject(v4))
    for (
      const hop of [
        `${v4}:`,
        `${v4}:x`,
        `x${v4}:1`,
        `[${v4}]x`,
        `[${v4}]:`,
        `[${v4}]:1x`,
        `x[${v4}]`,
        `a${v4}`,
      ]
    ) {
      t.strictSame(
        parseClientAddress(hop),
        { text: undefined, address: undefined, subject: 'unreadable' },
        hop,
      )
    }
  }
  t.strictSame(parseClientAddress(undefined), { text: undefined, address: undefined, subject: undefined })
  t.end()
})

t.test('a value in a message is quoted, short, visible and never a key', (t) => {
  const values: [unknown, string][] = [
    ['a', '"a"'],
    ['', '""'],
    [key, 'a value that looks like a key'],
    [[], 'a list'],
    [undefined, 'nothing'],
    [{}, 'an object'],
    [null, 'null'],
    [7, '7'],
    [false, 'false'],
    ['a'.repeat(60), `"${'a'.repeat(60)}"`],
    ['a'.repeat(61), `"${'a'.repeat(60)}…"`],
    ['👋'.repeat(60), `"${'👋'.repeat(60)}"`],
    ['👋'.repeat(61), `"${'👋'.repeat(60)}…"`],
    ['a\x9b\u202e\u2028\u2029b', '"a\\u{9b}\\u{202e}\\u{2028}\\u{2029}b"'],
  ]
  for (const [value, text] of values) t.equal(formatValue(value), text)
  let encoded = key
  for (const times of [0, 1, 2, 3]) {
    t.equal(redactKeys(`a${encoded}`), '[redacted]', `encoded ${times} times`)
    encoded = encoded.replaceAll('%', '%25').replaceAll('_', '%5F')
  }
  const broken = `${key.slice(0, 20)}\r\n ${key.slice(20)}`
  t.strictSame([redactKeys(broken), redactPath(`/${broken}`), redactPath('/a')], ['[redacted]', '/', '/a'])
  for (const text of ['', 'a', 'a%', '%zz', '%25'.repeat(9)]) t.equal(redactKeys(text), text)
  const token = 'aB3'.padEnd(32, 'x')
  const paths = {
    [`/service/claim/${token}`]: '/service/claim/…',
    [`/service/claims/${token}.`]: '/service/claims/…',
    [`/${token}/x`]: '/…/x',
    [`/service/claim%25252525252f${token}`]: '/service/…',
    [`/a/x%61${token.slice(0, 10)}%0A${token.slice(10)}`]: '/a/…',
    [`/a/${token.slice(0, 28)}`]: '/a/…',
    '/service/insurance/claim/77/items': undefined,
    [`/service/orders/${'0123456789abcdef'.repeat(4)}`]: undefined,
    [`/service/profiles/${'a-long-slug-'.repeat(6)}b`]: undefined,
  }
  for (const [path, shown = path] of Object.entries(paths)) t.equal(redactPath(path), shown)
  t.end()
})

/** The command line and the client process external text in linear time. */
import process from 'node:process'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { createPartnerClient } from '../../adapters/client/mod.ts'
import { createRequestBuilder } from '../../adapters/client/transport.ts'
import { readLines } from '../../cli/files.ts'
import { holdsPassword, parseStoreUrl } from '../../cli/store/url.ts'
import { endOption, limitParser } from '../../cli/options.ts'
import {
  formatDetails,
  formatStack,
  printable,
  printableJson,
  redact,
  redactAll,
} from '../../cli/output/text.ts'
import { parseDeploymentUrl } from '../../cli/verify/credential.ts'
import { type DeploymentResponse, toDeploymentResponse } from '../../cli/verify/deployment.ts'
import { readVerification } from '../../cli/verify/response.ts'
import { checkResponse } from '../../cli/verify/smoke.ts'
import { createServiceNames } from '../../core/http/headers.ts'
import { RESPONSE_SCHEMAS } from '../../core/schemas/responses.ts'

const expected = {
  status: 200,
  bodySchema: RESPONSE_SCHEMAS['plans'],
  names: createServiceNames('service'),
  version: '2026-11-20',
  policies: ['key'],
} as const
const asked = { key: 'none', keyId: undefined, partner: 'acme', names: expected.names }
const fields = [
  'content-type',
  'location',
  'link',
  'etag',
  'vary',
  'ratelimit',
  'retry-after',
  'x-request-id',
]
const replyOf = (status: number, text: string, header: string): DeploymentResponse => {
  const headers = Object.fromEntries(fields.map((name) => [name, header]))
  return toDeploymentResponse({ url: 'http://127.0.0.1/', status, headers, text, ms: 1 })
}
const client = (text: string, header: string) =>
  createPartnerClient({
    url: 'https://api.example',
    key: 'key',
    partner: 'acme',
    retries: 0,
    fetch: () => Promise.resolve(new Response(text, { status: 503, headers: { 'retry-after': header } })),
  })

/** Functions that read external text, and its maximum length. */
const kibibyte = 1_024
const long = 256 * kibibyte
const short = 128 * kibibyte
const readers: Readonly<Record<string, readonly [max: number, read: (text: string) => unknown]>> = {
  redact: [long, redact],
  redactAll: [long, (text) => redactAll({ [text]: [text] })],
  printable: [long, printable],
  printableJson: [long, (text) => printableJson(JSON.stringify(text))],
  stackText: [short, (text) => formatStack(new Error(text))],
  details: [long, (text) => formatDetails([['name', text]])],
  'store URLs': [
    short,
    (text) => holdsPassword(`a://${text}`) || holdsPassword(text) || parseStoreUrl(`sqlite:${text}`),
  ],
  'deployment URLs': [short, (text) => parseDeploymentUrl(`http://api.example/${text}`)],
  'addresses of the client': [
    short,
    (text) => createRequestBuilder(`http://api.example/${text}`, 'service', 'k'),
  ],
  'routes of the client': [short, (text) => client('', '').request(`GET /${text}`)],
  limits: [short, (text) => limitParser(['key'])(text)],
  ends: [short, endOption],
  'header fields': [16 * kibibyte, (text) => checkResponse(replyOf(200, '{}', text), expected)],
  'bodies of endpoints': [
    long,
    (text) =>
      checkResponse(replyOf(200, JSON.stringify({ data: [{ name: text, [text]: 1 }] }), ''), expected),
  ],
  'bodies of verify-key': [
    long,
    (text) => readVerification(replyOf(502, text, 'text/html'), asked),
  ],
  'problems of verify-key': [
    long,
    (text) => readVerification(replyOf(403, JSON.stringify({ code: text, title: text }), ''), asked),
  ],
}

/** Fragments that regular expressions search for. */
const piece = fc.constantFrom(
  ...'_live_ _test_a_ postgres:// :// / : @ ? &password= = <title < > " , % a A 0 .'.split(' '),
  ' ',
  '\n',
  '\u202e',
  '\ud83d',
  "'",
)

/** Milliseconds of processor time below which a measurement is noise. */
const negligibleMs = 40

/** Processor time in milliseconds, the minimum of three measurements to exclude other load. */
async function cost(read: (text: string) => unknown, text: string): Promise<number> {
  let least = Infinity
  for (let time = 0; time < 3 && least >= negligibleMs; time++) {
    const before = process.cpuUsage()
    try {
      await read(text)
    } catch {
      // Rejecting the text is fine.
    }
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}

/** Compares with eight times the text, which takes 8 times as long in linear time, and 64 times in quadratic time. */
async function isLinear(read: (text: string) => unknown, pattern: string, max: number): Promise<boolean> {
  const repeated = (length: number) => pattern.repeat(Math.ceil(length / pattern.length))
  for (let attempt = 0; attempt < 3; attempt++) {
    const whole = await cost(read, repeated(max))
    if (whole < negligibleMs || whole < 24 * await cost(read, repeated(max / 8))) return true
  }
  return false
}

for (const [name, [max, read]] of Object.entries(readers)) {
  t.test(`${name} take linear time`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { minLength: 1, maxLength: 3 }),
        (pieces) => isLinear(read, pieces.join(''), max),
      ),
      { numRuns: 12, examples: [[['/']], [['postgres://']], [['_live_']], [[':']], [['a']], [['<title']]] },
    )
  })
}

t.test('the client reads responses in linear time', async (t) => {
  const read = async (text: string) => {
    await client(text, text.slice(0, 16 * kibibyte).replace(/[^ -~]/g, '')).plans()
  }
  for (const pattern of ['[', '{"a":', '0', ' ', ' GMT', '1 jan ']) {
    t.ok(await isLinear(read, pattern, long), pattern)
  }
})

t.test('a line that arrives in short chunks in linear time', async (t) => {
  const chunkBytes = 256
  const read = async (text: string) => {
    const chunks = Array.from(
      { length: text.length / chunkBytes },
      (_, n) => Buffer.from(text.slice(n * chunkBytes, (n + 1) * chunkBytes)),
    )
    for await (const line of readLines('-', Readable.from(chunks))) t.equal(line.length, text.length)
  }
  t.ok(await isLinear(read, 'a', 1_024 * kibibyte))
})

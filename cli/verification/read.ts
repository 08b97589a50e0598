import * as v from 'valibot'
import { parseInstant } from '../../core/content/instant.ts'
import { hasValidChecksum } from '../../core/keys/format.ts'
import type * as wire from '../../core/wire.ts'
import { Failure } from '../failure.ts'
import { excerpt, printable } from '../output/text.ts'
import { notThisService, type Reply } from './ask.ts'
import type { Trial } from './smoke.ts'

/** What a deployment sends, perhaps a newer one: it may use names that this program does not know. */
type Loose<T> = T extends string ? string
  : T extends readonly (infer Item)[] ? readonly Loose<Item>[]
  : T extends object ? { readonly [Name in keyof T]: Loose<T[Name]> }
  : T

/** What verify-key says of a key that is valid. */
export type Verification = Loose<Omit<wire.Verification, 'endpoints'>> & {
  readonly endpoints: readonly (Pick<Trial, 'method' | 'path' | 'scope'> & { readonly allowed: boolean })[]
}

const instant = v.pipe(v.string(), v.check((text) => parseInstant(text) !== undefined))
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

// Additions make no new version of the wire (contract, section 1), so every object may have further members.
const verification: v.GenericSchema<unknown, Verification> = v.looseObject({
  valid: v.literal(true),
  partner: v.looseObject({ slug: v.string(), name: v.string() }),
  key: v.looseObject({
    id: v.string(),
    name: v.string(),
    environment: v.string(),
    hint: v.string(),
    created_at: instant,
    expires_at: v.nullable(instant),
    rotation: v.nullish(v.looseObject({ successor_id: v.string(), retires_at: instant }), null),
  }),
  scopes: v.array(v.looseObject({ scope: v.string(), in_force: v.boolean() })),
  modules: v.array(v.looseObject({
    module: v.string(),
    active: v.boolean(),
    ready: v.boolean(),
    missing_scope: v.nullable(v.string()),
  })),
  endpoints: v.array(v.looseObject({
    method: v.string(),
    path: v.string(),
    scope: v.nullable(v.string()),
    allowed: v.boolean(),
  })),
  limits: v.array(v.looseObject({
    policy: v.string(),
    quota: count,
    window_seconds: count,
    remaining: count,
    resets_in_seconds: count,
  })),
  version: v.string(),
  checked_at: instant,
  max_staleness_ms: count,
  stale_if_error: v.optional(v.looseObject({ seconds: count, since: v.nullable(instant) })),
})

/** What a problem document has to have. */
const problem: v.GenericSchema<unknown, {
  readonly code: string
  readonly title: string
  readonly detail?: string | undefined
  readonly request_id?: string | undefined
}> = v.looseObject({
  code: v.string(),
  title: v.string(),
  detail: v.optional(v.string()),
  request_id: v.optional(v.string()),
})

/** The problem that an answer is, `undefined` for any other answer. */
export function readProblem({ text }: Reply): v.InferOutput<typeof problem> | undefined {
  const read = v.safeParse(problem, parseJson(text), { abortEarly: true })
  return read.success ? read.output : undefined
}

/** What was asked about. */
export interface Question {
  readonly key: string
  /** Its public id, `undefined` for what is no key. */
  readonly keyId: string | undefined
  /** A slug. */
  readonly partner: string
}

/** How much is shown of a text that a deployment sent, in UTF-16 units. */
const maxDetail = 1_000
const maxName = 200

/** A name that a deployment sent, on one line. */
function shown(name: string): string {
  return printable(excerpt(name, maxName))
}

/**
 * Reads the answer of verify-key.
 *
 * @throws {Failure} exit code 1 when the service refuses the key or the answer is about another one, 3 when the
 * service could not tell or something else answered.
 */
export function readVerification(reply: Reply, asked: Question): Verification {
  const { url, status } = reply
  if (status >= 300 && status < 400) {
    throw new Failure(
      3,
      'redirected',
      `${url} redirects to ${shown(reply.header('location') ?? 'nowhere')}. That is not followed, ` +
        'because it would carry the key there; if it is the right deployment, give its address as --url.',
    )
  }
  const page = pageIn(reply)
  if (status === 200) {
    const answer = v.safeParse(v.looseObject({ data: verification }), parseJson(reply.text), {
      abortEarly: true,
    })
    if (answer.success) return requireSameSubject(answer.output.data, asked)
    throw notThisService(url, `it is ${page ?? 'of another form than the answer of verify-key'}`)
  }
  const answer = readProblem(reply)
  if (answer === undefined) throw notTheService(reply, page)
  const { code, title, detail, request_id } = answer
  if (code === 'route_not_found' || code === 'method_not_allowed') {
    throw notThisService(url, 'it has no verify-key there')
  }
  const sentence = excerpt(detail ?? title, maxDetail)
  // What the log has by default, see `--log` of `serve`.
  const isLogged = status === 401 || status === 403 || status >= 500
  const reference = isLogged ? "Request ID, for the operator's log" : 'Request ID'
  throw new Failure(
    status >= 500 ? 3 : 1,
    excerpt(code, maxName),
    `${printable(sentence)} (${shown(code)})`,
    {
      members: { detail: sentence, ...(request_id && { request_id: excerpt(request_id, maxName) }) },
      lines: [hintFor(code, asked.key, reply), request_id ? `${reference}: ${shown(request_id)}` : '']
        .filter((line) => line !== ''),
    },
  )
}

/** A cache or gateway may hand out what was answered to somebody else. */
function requireSameSubject(answer: Verification, { keyId, partner }: Question): Verification {
  if (answer.partner.slug === partner && (keyId === undefined || answer.key.id === keyId)) return answer
  const other = `key ${shown(answer.key.id)} of partner ${shown(answer.partner.slug)}`
  throw new Failure(
    1,
    'other_subject',
    `The answer is about ${other}, but the question was about ${
      keyId === undefined ? 'a key' : `key ${keyId}`
    } of partner ${partner}. A cache or gateway in front of the service mixes up answers.`,
  )
}

function notTheService({ url, status }: Reply, page: string | undefined): Failure {
  if (status === 502 || status === 503 || status === 504) {
    const what = page === undefined ? '' : ` with ${page}`
    const { host } = new URL(url)
    return new Failure(
      3,
      'service_down',
      `The service is down behind ${host}, which answered ${status}${what}.`,
    )
  }
  return notThisService(url, `it answered with status ${status} and ${page ?? 'no problem document'}`)
}

/** Says of an HTML page that it is one, and how it is titled; `undefined` for any other answer. */
export function pageIn({ header, text }: Reply): string | undefined {
  if (!header('content-type')?.startsWith('text/html') && !/^\s*<(?:!doctype )?html/i.test(text)) {
    return undefined
  }
  const head = text.slice(0, 16_384)
  const opening = head.search(/<title[\s>]/i)
  const start = opening === -1 ? 0 : head.indexOf('>', opening) + 1
  const title = start === 0 ? '' : head.slice(start).split('<', 1).join('').trim()
  return title === '' ? 'an HTML page' : `the HTML page "${shown(title.replace(/\s+/g, ' '))}"`
}

function hintFor(code: string, key: string, reply: Reply): string {
  switch (code) {
    case 'key_invalid':
      return hasValidChecksum(key)
        ? 'Its checksum is right, so it was copied whole: it is of another deployment, or of nobody.'
        : 'Its checksum is wrong: it was mistyped, cut off, or never was a key.'
    case 'key_missing':
      return 'The key was sent: something between here and the service drops its header.'
    case 'key_revoked':
    case 'key_expired':
      return 'That is final: ask the operator for another key.'
    case 'key_disabled':
      return 'The operator can enable it again.'
    case 'partner_mismatch':
      return 'The key is right, but it belongs to another partner: check --partner.'
    case 'partner_suspended':
      return 'The operator can resume the partner.'
    case 'address_not_allowed':
      return 'The key may be used from some addresses only: run this where the integration runs.'
    case 'rate_limited':
      return `Try again in ${shown(reply.header('retry-after') ?? 'some')} seconds.`
    case 'store_unavailable':
    case 'internal':
      return 'The service is there but could not tell: try again.'
    default:
      return ''
  }
}

/** What a text says as JSON, `undefined` when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

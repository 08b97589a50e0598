import * as v from 'valibot'
import type { ServiceNames } from '../../core/service-names.ts'
import { excerpt } from '../output/text.ts'
import type { Reply } from './ask.ts'
import { pageIn, parseJson, readProblem } from './read.ts'

/** What an answer has to be like, besides what every answer is like. */
export interface Expectation {
  readonly status: 200 | 201
  /** Schema of the body. */
  readonly reply: v.GenericSchema
  readonly names: ServiceNames
  readonly version: string
  /** The limits that the request meets and that are on. */
  readonly policies: readonly string[]
}

/** How many wrong members of one body are named. */
const maxNamed = 3
const maxSaid = 160

/** Says what about an answer is not as the contract has it; nothing when all is. */
export function judge(reply: Reply, expected: Expectation): string[] {
  if (reply.status !== expected.status) return [unexpectedStatus(reply, expected.status)]
  return [
    ...judgeHeaders(reply, expected),
    ...judgeFields(reply, expected),
    ...judgeBody(parseJson(reply.text), expected.reply),
  ]
}

/** Says what is wrong with the fields that a 200, a 201 and a 304 have alike. */
export function judgeFields(reply: Reply, { names, policies, status }: Expectation): string[] {
  const varies = status === 200 ? ['Authorization', names.keyHeader, names.versionHeader] : []
  const wrong = [
    ...missing(reply, 'Vary', varies, (item, name) => item.toLowerCase() === name.toLowerCase()),
    ...['RateLimit-Policy', 'RateLimit'].flatMap((field) =>
      missing(reply, field, policies, (item, policy) => item.startsWith(`"${policy}"`))
    ),
  ]
  const origin = reply.header('access-control-allow-origin')
  // The service is for servers only: with this field, pages of other sites could read the answer.
  if (origin !== undefined) wrong.push(`it has Access-Control-Allow-Origin: ${sayable(origin)}`)
  return wrong
}

function missing(
  reply: Reply,
  field: string,
  members: readonly string[],
  isMember: (item: string, member: string) => boolean,
): string[] {
  const value = reply.header(field)
  if (value === undefined) return members.length === 0 ? [] : [`it has no ${field}`]
  const items = value.split(',').map((item) => item.trim())
  return members.filter((member) => !items.some((item) => isMember(item, member)))
    .map((member) => `its ${field} lacks ${member}`)
}

/** The code of the problem that an answer is, `undefined` for any other answer. */
export function problemCode(reply: Reply): string | undefined {
  return reply.header('content-type') === 'application/problem+json' ? readProblem(reply)?.code : undefined
}

function judgeHeaders(reply: Reply, { status, names, version }: Expectation): string[] {
  const wanted: readonly (readonly [name: string, isRight: (value: string) => boolean])[] = [
    ['Content-Type', (value) => value === 'application/json; charset=utf-8'],
    ['X-Request-Id', (value) => /^req_[0-9A-Za-z_-]+$/.test(value)],
    [names.versionHeader, (value) => value === version],
    ['X-Content-Type-Options', (value) => value === 'nosniff'],
    ['Cache-Control', (value) => value === (status === 200 ? 'private, no-cache' : 'no-store')],
    // RFC 9110 §8.8.3: a weak tag begins with W/.
    ...(status === 200 ? [['ETag', (value: string) => /^"[^"]+"$/.test(value)]] as const : []),
  ]
  return wanted.flatMap(([name, isRight]) => {
    const value = reply.header(name)
    if (value === undefined) return [`it has no ${name}`]
    return isRight(value) ? [] : [`its ${name} is ${sayable(value)}`]
  })
}

function judgeBody(body: unknown, schema: v.GenericSchema): string[] {
  if (body === undefined) return ['its body is no JSON']
  const { issues = [] } = v.safeParse(schema, body)
  const wrong = issues.filter((issue) => !isAddition(issue))
  const named = wrong.slice(0, maxNamed).map((issue) =>
    `${sayable(v.getDotPath(issue) ?? 'the body')} is not as the contract has it: expected ${
      sayable(String(issue.expected ?? issue.type))
    }, received ${sayable(issue.received)}`
  )
  return wrong.length > maxNamed ? [...named, `and ${wrong.length - maxNamed} more members are wrong`] : named
}

/** Additions make no new version of the wire (contract, section 1). */
function isAddition(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === 'strict_object' && issue.expected === 'never'
}

function unexpectedStatus(reply: Reply, expected: number): string {
  const code = problemCode(reply)
  if (code === 'rate_limited') {
    return `its limit is spent: try again in ${sayable(reply.header('retry-after') ?? 'some')} seconds`
  }
  const location = reply.status >= 300 && reply.status < 400 ? reply.header('location') : undefined
  const what = code === undefined ? '' : ` ${sayable(code)}`
  const where = location === undefined ? '' : `, a redirect to ${sayable(location)}, which is not followed`
  const page = pageIn(reply)
  const shown = page === undefined ? '' : `, with ${page}`
  return `it answered ${reply.status}${what} and not ${expected}${where}${shown}`
}

/** What a deployment said, short and without anything in the shape of a key. */
export function sayable(text: string): string {
  return excerpt(text, maxSaid)
}

import * as v from 'valibot'
import { redact } from '../output/text.ts'
import type { Reply } from './ask.ts'
import { parseJson, problem } from './read.ts'

/** What an answer has to be like, besides what every answer is like. */
export interface Expectation {
  readonly status: 200 | 201
  /** Schema of the body. */
  readonly reply: v.GenericSchema
  /** As `ServiceNames` has it. */
  readonly versionHeader: string
  readonly version: string
}

/** How many wrong members of one body are named. */
const maxNamed = 3
const maxSaid = 160

/** Says what about an answer is not as the contract has it; nothing when all is. */
export function judge(reply: Reply, expected: Expectation): string[] {
  const wanted = wantedHeaders(expected)
  return reply.status === expected.status
    ? [...judgeHeaders(reply, wanted), ...judgeBody(parseJson(reply.text), expected.reply)]
    : [unexpectedStatus(reply, expected.status)]
}

/** The code of the problem that an answer is, `undefined` for any other answer. */
export function problemCode({ text, header }: Reply): string | undefined {
  if (header('content-type') !== 'application/problem+json') return undefined
  const read = v.safeParse(problem, parseJson(text))
  return read.success ? read.output.code : undefined
}

type Wanted = readonly (readonly [name: string, isRight: (value: string) => boolean])[]

function wantedHeaders({ status, versionHeader, version }: Expectation): Wanted {
  return [
    ['Content-Type', (value) => value === 'application/json; charset=utf-8'],
    ['X-Request-Id', (value) => /^req_[0-9A-Za-z_-]+$/.test(value)],
    [versionHeader, (value) => value === version],
    ['X-Content-Type-Options', (value) => value === 'nosniff'],
    ['Cache-Control', (value) => value === (status === 200 ? 'private, no-cache' : 'no-store')],
    // RFC 9110 §8.8.3: a weak tag begins with W/.
    ...(status === 200 ? [['ETag', (value: string) => /^"[^"]+"$/.test(value)]] as const : []),
  ]
}

function judgeHeaders(reply: Reply, wanted: Wanted): string[] {
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
    `${v.getDotPath(issue) ?? 'the body'} is not as the contract has it: expected ${
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
  return `it answered ${reply.status}${what} and not ${expected}${where}`
}

/** What a deployment said, short and without anything in the shape of a key. */
export function sayable(text: string): string {
  return redact(text).slice(0, maxSaid)
}

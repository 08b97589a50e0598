/** What partners read about an invalid value: the one table from valibot's issues to sentences. */
import type { BaseIssue } from 'valibot'
import { redactKeys } from '../http/redact.ts'

type Issue = BaseIssue<unknown>

/** The end of a sentence about a value. */
type Sentence = string | ((issue: Issue) => string)

/** Sentences by the type of the schema or action that a value does not pass. */
const issueSentences: ReadonlyMap<string, Sentence> = new Map<string, Sentence>([
  ['string', 'must be text'],
  ['number', 'must be a number'],
  ['boolean', 'must be true or false'],
  ['null', 'must be null'],
  ['never', 'must be absent'],
  ['undefined', 'must be absent'],
  ['void', 'must be absent'],
  ['non_nullable', 'must not be null'],
  ['non_nullish', 'must not be null'],
  ['literal', oneOf],
  ['picklist', oneOf],
  ['enum', oneOf],
  ['union', describeUnion],
  ['array', 'must be a list'],
  ['tuple', 'must be a list'],
  ['loose_tuple', 'must be a list'],
  ['tuple_with_rest', 'must be a list'],
  ['strict_tuple', ({ expected }) => expected === 'never' ? 'is not an item of this list' : 'must be a list'],
  ['object', 'must be an object'],
  ['loose_object', 'must be an object'],
  ['object_with_rest', 'must be an object'],
  ['record', 'must be an object'],
  [
    'strict_object',
    ({ expected }) => expected === 'never' ? 'is not a member of this object' : 'must be an object',
  ],
  ['variant', (issue) => issue.expected === 'Object' ? 'must be an object' : oneOf(issue)],
  ['integer', 'must be an integer'],
  [
    'safe_integer',
    `must be an integer from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`,
  ],
  ['finite', 'must be finite'],
  ['min_value', (issue) => `must be ${boundOf(issue)} or more`],
  ['max_value', (issue) => `must be ${boundOf(issue)} or less`],
  ['gt_value', (issue) => `must be more than ${boundOf(issue)}`],
  ['lt_value', (issue) => `must be less than ${boundOf(issue)}`],
  ['multiple_of', (issue) => `must be a multiple of ${boundOf(issue)}`],
  ['value', oneOf],
  ['values', oneOf],
  ['not_value', (issue) => `must not be ${boundOf(issue)}`],
  ['not_values', (issue) => `must not be one of ${listed(boundOf(issue))}`],
  ['empty', 'must be empty'],
  ['non_empty', 'must not be empty'],
  ['starts_with', (issue) => `must begin with ${boundOf(issue)}`],
  ['ends_with', (issue) => `must end with ${boundOf(issue)}`],
  ['includes', (issue) => `must contain ${boundOf(issue)}`],
  ['excludes', (issue) => `must not contain ${boundOf(issue)}`],
  ['regex', ({ expected }) => `must match ${expected}`],
  ['email', 'must be an e-mail address'],
  ['rfc_email', 'must be an e-mail address'],
  ['url', 'must be a URL'],
  ['uuid', 'must be a UUID'],
  ['ip', 'must be an IP address'],
  ['ipv4', 'must be an IPv4 address'],
  ['ipv6', 'must be an IPv6 address'],
  ['digits', 'must be of digits'],
  ['iso_date', 'must be a date, YYYY-MM-DD'],
  ['iso_date_time', 'must be a date and time, YYYY-MM-DDThh:mm'],
  ['iso_time', 'must be a time, hh:mm'],
  ['iso_timestamp', 'must be a date and time with an offset, such as 2026-01-31T09:30:00Z'],
  ['check', 'is not valid'],
  ['raw_check', 'is not valid'],
  ['partial_check', 'is not valid'],
  ['check_items', 'is not valid'],
  ['every_item', 'is not valid'],
  ['some_item', 'is not valid'],
  ['custom', 'is not valid'],
  ['raw_transform', 'is not valid'],
  ['to_number', 'must be a number'],
  ['to_date', 'must be a date'],
  ['parse_json', 'must be JSON'],
])

/** The end of a sentence about a value that a schema refuses. The value itself may be a secret and is not repeated. */
export function describeIssue(issue: Issue): string {
  if (issue.received === 'undefined' && issue.path !== undefined) return 'is required'
  if (!hasDefaultMessage(issue)) return redactKeys(issue.message)
  const sentence = issueSentences.get(issue.type) ?? describeCount
  return typeof sentence === 'string' ? sentence : sentence(issue)
}

/** Whether valibot made the message, which repeats the value. */
function hasDefaultMessage({ message, expected, received }: Issue): boolean {
  const end = expected ? `Expected ${expected} but received ${received}` : `Received ${received}`
  return message.startsWith('Invalid ') && message.endsWith(`: ${end}`)
}

/** What an issue expects, without the sign before it. */
function boundOf({ expected }: Issue): string {
  return `${expected}`.replace(/^(?:[<>]=?|[!%])/, '')
}

function oneOf({ expected }: Issue): string {
  const names = `${expected}`
  return names.startsWith('(') ? `must be one of ${listed(names)}` : `must be ${names}`
}

/** Several values, which valibot writes as `("a" | "b")`. */
function listed(values: string): string {
  return values.replace(/^\(|\)$/g, '').replaceAll(' | ', ', ')
}

function describeUnion({ issues }: Issue): string {
  const alternatives: readonly Issue[] = issues ?? []
  const sentences = [...new Set(alternatives.map(describeIssue))]
  const isPlain = alternatives.every(({ path }) => path === undefined) &&
    sentences.every((sentence) => sentence.startsWith('must be '))
  if (!isPlain) return 'is not valid'
  return `must be ${sentences.map((sentence) => sentence.slice('must be '.length)).join(', or ')}`
}

/** What actions count, by the end of their types; `length` is that of a text or a list. */
const units: Readonly<Record<string, string>> = {
  bytes: 'byte',
  words: 'word',
  graphemes: 'character',
  code_points: 'character',
  entries: 'member',
  size: 'item',
}

/**
 * A sentence about a number of characters, items or the like; about any other action, one with the name of its type.
 */
function describeCount(issue: Issue): string {
  const [, bound, counted = ''] = /^(min_|max_|not_|)([a-z_]+)$/.exec(issue.type) ?? []
  const lengthUnit = typeof issue.input === 'string' ? 'character' : 'item'
  const unit = counted === 'length' ? lengthUnit : units[counted]
  if (unit === undefined) return `is not a valid ${issue.type.replaceAll('_', ' ')}`
  const number = boundOf(issue)
  const count = number === '1' ? `1 ${unit}` : `${number} ${unit}s`
  if (bound === 'min_') return `must have at least ${count}`
  if (bound === 'max_') return `must have at most ${count}`
  return bound === 'not_' ? `must not have ${count}` : `must have ${count}`
}

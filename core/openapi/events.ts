/** The events of webhooks. The code that makes events makes their examples, and the schemas follow from these. */
import { signups } from '../routes/signups.ts'
import { keySchema } from '../schemas/responses.ts'
import { changeEvents, createEvent, endEvent, signupEvent, webhookDisabledEvent } from '../webhooks/events.ts'
import { quotaData } from '../webhooks/quota-events.ts'
import texts from './events.json' with { type: 'json' }
import { convert, type JsonSchema } from '../schemas/json-schema.ts'
import { bodyMembers } from './operation.ts'

type Members = Readonly<Record<string, JsonSchema>>

interface EventText {
  readonly text: string
  readonly subject?: string
  /** Members of the record before the change, and after it. */
  readonly was?: object
  readonly change?: object
}

interface GroupText {
  readonly title: string
  readonly of: string
  readonly members?: Members
  readonly types: Readonly<Record<string, EventText>>
}

export type EventGroup = ReturnType<typeof describeEvents>[number]

export function describeEvents() {
  const sources: Readonly<Record<string, Members>> = {
    key: convert(keySchema).properties!,
    signup: bodyMembers(signups),
  }
  const groups = Object.entries<GroupText>(texts.groups)
  return groups.map(([name, { title, of, members, types }]) => {
    const shared = groups.find(([, first]) => first.of === of)![1].members
    const known: Members = { ...sources[of], ...texts.members, ...shared, ...members }
    const events = Object.entries(types).map(([type, event]) => (
      {
        type,
        text: event.text,
        example: JSON.parse(payloadOf(type, event)) as { readonly type: string; readonly data: object },
      }
    ))
    const names = events.map(({ example }) => Object.keys(example.data))
    const data: JsonSchema = {
      title: name,
      type: 'object',
      required: names[0]!.filter((one) => names.every((others) => others.includes(one))),
      properties: Object.fromEntries(names.flat().map((one) => [one, known[one]!])),
    }
    return { name, title, data, events }
  })
}

// deno-lint-ignore no-explicit-any -- the type of a JSON file has no literals
const { key, partner, signup, webhook }: any = texts.records

function payloadOf(type: string, { subject, was, change }: EventText): string {
  const at: number = signup.createdAt
  const context = { actor: 'ada', at }
  if (type === 'signup.created') return signupEvent(signup).payload
  if (type.startsWith('quota.')) {
    const head = { id: type, type: type as 'quota.warning', partner: undefined, createdAt: at }
    return createEvent(head, quotaData(partner, change!)).payload
  }
  if (type === 'webhook.disabled') return webhookDisabledEvent(webhook, context).payload
  if (type.startsWith('key.expir')) return endEvent({ ...key, ...change }, partner, at, String).payload
  const isOfKey = /^(?:key|scope)/.test(type)
  const record = isOfKey ? key : partner
  const before = change && { ...record, ...was }
  const after = { ...record, ...change }
  const [old, current] = [before, after].map((state) => state && JSON.stringify(state))
  const about = { partner: partner.slug, keyId: isOfKey ? key.id : undefined, subject }
  const [event] = changeEvents({
    auditRecords: [{ type: type as 'key.issued', ...about, before: old, after: current }],
    keys: new Map([[key.id, after]]),
    partners: new Map([[partner.slug, after]]),
  }, context)
  return event!.payload
}

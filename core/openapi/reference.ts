/** What the reference says: the OpenAPI document for people, between guides. */
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { API_VERSION, MODULE_NAMES, MODULES, type ServicePolicyName } from '../model.ts'
import { fill, type OpenApiDocument, otherTurn } from './document.ts'
import { describeEvents } from './events.ts'
import texts from './guides.json' with { type: 'json' }
import type { DocumentSettings } from './model.ts'
import { describeEndpoint, describeEventGroup, groupEndpoints, SERVICE_GROUP } from './reference-endpoints.ts'
import type {
  Block,
  CodeBlock,
  Fact,
  Inline,
  ReferenceContent,
  ReferencePart,
  Section,
  Table,
} from './reference-model.ts'
import { baseUrl, configuredUrl, sampleOf } from './samples.ts'

const subjects =
  'Profiles, a searchable directory, banners, countries, industries, plans, a widget, signups and ' +
  'reports: one key per partner, JSON over HTTP.'

const cards = [
  { id: 'guide-quick-start', title: 'Quick start', text: 'From a key to the first response.' },
  { id: 'guide-authentication', title: 'Authentication', text: 'One key per installation, on servers only.' },
  { id: 'guide-events', title: 'Webhooks', text: 'Signed events in place of polling.' },
  { id: 'guide-problem-codes', title: 'Errors', text: 'Every code, and what to do about it.' },
]

/** Other requests get the event loop between its endpoints, as between those of the document. */
export async function createReference(
  described: OpenApiDocument,
  settings: DocumentSettings,
): Promise<ReferenceContent> {
  const { title, summary } = described.info
  return {
    title,
    summary,
    lead: `${summary} ${subjects}`,
    cards,
    facts: factsOf(settings),
    parts: await partsOf(described, settings),
    exampleAddress: configuredUrl(settings) === undefined ? baseUrl(settings) : undefined,
  }
}

/** The parts of the reference in their order: what needs no key is read last. */
async function partsOf(
  described: OpenApiDocument,
  settings: DocumentSettings,
): Promise<readonly ReferencePart[]> {
  const groups: ReferencePart[] = []
  for (const [name, entries] of groupEndpoints(described)) {
    const sections: Section[] = []
    for (const entry of entries) {
      await otherTurn()
      sections.push(describeEndpoint(entry, settings))
    }
    const isQuiet = name === SERVICE_GROUP
    groups.push({ name, sections: [], group: { label: name, isHeading: true, isQuiet, sections } })
  }
  await otherTurn()
  const guides = guidesOf(described, settings)
  const events = describeEvents().map(describeEventGroup)
  const isService = ({ name }: ReferencePart) => name === SERVICE_GROUP
  return [
    { name: 'Overview', sections: guides.slice(0, 2) },
    ...groups.filter((part) => !isService(part)),
    {
      name: 'Webhooks',
      sections: guides.slice(2, 3),
      group: { label: 'Event types', isHeading: false, isQuiet: false, sections: events },
    },
    { name: 'Guides', sections: guides.slice(3) },
    ...groups.filter(isService),
  ]
}

/** A guide as it is in its file. */
interface GuideText {
  readonly title: string
  readonly words?: string
  readonly text: readonly string[]
  readonly code: readonly GuideCode[]
}

/** Code of a guide: a text to copy, the samples of an operation, or a problem. */
interface GuideCode {
  readonly caption: string
  readonly note?: string
  readonly code?: string
  readonly sample?: string
  readonly problem?: string
}

/** All guides: two that are read before the endpoints, that of webhooks, and the others. */
function guidesOf(described: OpenApiDocument, settings: DocumentSettings): readonly Section[] {
  const guides = Object.entries(fill<Readonly<Record<string, GuideText>>>(texts, settings))
  const tables = tablesOf(settings)
  return guides.map(([name, { title, words = '', text, code }]) => {
    const blocks: Block[] = [{ kind: 'prose', lines: text }]
    for (const each of code) blocks.push(...codeOf(each, described, settings))
    if (tables[name] !== undefined) blocks.push(tables[name])
    return { id: `guide-${name}`, level: 2, title, words, blocks }
  })
}

/** @returns None for the samples of an operation that the service does not have. */
function codeOf(
  { caption, note, code: text, sample = '', problem = '' }: GuideCode,
  { components: { examples } }: OpenApiDocument,
  settings: DocumentSettings,
): readonly CodeBlock[] {
  const example = examples[problem]
  const code = text ?? (example ? JSON.stringify(example.value, null, 2) : sampleOf(sample, settings))
  if (code === undefined) return []
  return [{
    kind: 'code',
    caption,
    label: caption,
    code,
    isCopied: note === undefined,
    ...(note !== undefined && { note }),
  }]
}

const limitTexts: Readonly<Record<ServicePolicyName, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key, which count toward no other policy.',
  rotate: 'Rotations of keys by their partner.',
  authfail: 'Failed authentications from an address. Keys known to be valid still work.',
}

function tablesOf({ limits }: DocumentSettings): Readonly<Record<string, Table>> {
  const policies = Object.entries(limitTexts) as [ServicePolicyName, string][]
  const limitRows = policies.map(([name, text]) => {
    const { quota, windowSeconds } = limits[name]
    return { name, note: quota === 0 ? 'off' : `${quota} in ${windowSeconds} s`, text }
  })
  const scopeRows = MODULE_NAMES.map((module) => {
    const { scope, feature } = MODULES[module]
    return { name: scope, note: module, text: feature }
  })
  const problemRows = (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => {
    const { status, detail } = PROBLEMS[code]
    return {
      id: `problem-${code}`,
      name: code,
      note: String(status),
      text: detail,
      advice: PROBLEM_ACTIONS[code],
    }
  })
  return {
    limits: { kind: 'table', heads: ['Policy and default', 'What it counts'], rows: limitRows },
    scopes: { kind: 'table', heads: ['Scope and module', 'Purpose'], rows: scopeRows },
    'problem-codes': {
      kind: 'table',
      heads: ['Code and status', 'Meaning, and what to do'],
      rows: problemRows,
    },
  }
}

const link = (href: string, text: string = href): Inline => ({ href, text })

function factsOf(settings: DocumentSettings): readonly Fact[] {
  const { names, contact: { name, email, url } = {}, terms } = settings
  const facts: Fact[] = [
    { name: 'Base URL', value: [{ code: baseUrl(settings) }] },
    { name: 'Key', value: [{ code: names.keyHeader }] },
    { name: 'Version', value: [{ code: API_VERSION }] },
    {
      name: 'For machines',
      value: [link('openapi.json', 'OpenAPI 3.1'), ' · ', link('docs.md', 'Markdown')],
    },
  ]
  if (email) facts.push({ name: 'Contact', value: [link(`mailto:${email}`, name ?? email)] })
  else if (url) facts.push({ name: 'Contact', value: [link(url, name)] })
  if (terms) facts.push({ name: 'Terms', value: [link(terms)] })
  return facts
}

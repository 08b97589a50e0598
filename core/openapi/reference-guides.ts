/** The sections of the reference page that apply to all endpoints: the texts of guides.json, with samples and tables. */
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES, MODULES } from '../model.ts'
import { API_VERSION } from '../wire.ts'
import { fill, type OpenApiDocument } from './document.ts'
import texts from './guides.json' with { type: 'json' }
import { type CodeBlock, codeBlock, type Markup, markup, paragraphs, prose, table } from './html.ts'
import type { DocumentSettings } from './model.ts'
import { sampleOf } from './reference-samples.ts'

export interface Section {
  readonly id: string
  readonly title: string
  readonly text: readonly Markup[]
  /** Beside the text on wide screens. */
  readonly code: readonly Markup[]
  /** Below both. */
  readonly below: Markup | undefined
}

type Block = Omit<CodeBlock, 'code'> & { readonly code: CodeBlock['code'] | undefined }
type PerGuide<T> = { readonly [Id in keyof typeof texts]?: T }

/** All guides. The last one is the longest, so that every one can be scrolled to the top. */
export function guides(described: OpenApiDocument, settings: DocumentSettings): readonly Section[] {
  const filled = fill<typeof texts>(texts, settings)
  const blocks = blocksOf(described, settings)
  const tables = tablesOf(settings)
  return (Object.keys(texts) as (keyof typeof texts)[]).map((id) => {
    const { title, text } = filled[id]
    const code = (blocks[id] ?? []).flatMap(({ code, ...block }) =>
      code ? [codeBlock({ ...block, code })] : []
    )
    return { id, title, text: paragraphs(text), code, below: tables[id] }
  })
}

function blocksOf(
  { components: { examples } }: OpenApiDocument,
  settings: DocumentSettings,
): PerGuide<readonly Block[]> {
  const { names: { keyHeader, versionHeader }, limits: { key } } = settings
  const http = (caption: string, code: string): Block => ({ caption, note: 'HTTP', code, fixed: true })
  const problem = JSON.stringify(examples['invalid_parameter']?.value, null, 2)
  return {
    'quick-start': [
      { caption: '1. Read the key', code: 'read -rs PARTNER_API_KEY && export PARTNER_API_KEY' },
      { caption: '2. Verify the key', code: sampleOf('verifyKey', settings) },
      { caption: '3. Read profiles', code: sampleOf('recentProfiles', settings) },
    ],
    authentication: [
      http('The two ways to send a key', `${keyHeader}: <API_KEY>\nAuthorization: Bearer <API_KEY>`),
    ],
    paging: [http('The link to the next page', 'Link: <?partner=demo&limit=20&cursor=…>; rel="next"')],
    retries: [http('A key for retries', 'Idempotency-Key: 7d1f0c1e-6b8a-4a53-9c60-2f6a35d3c9a1')],
    limits: [http(
      'The rate limit headers',
      `RateLimit-Policy: "key";q=${key.quota};w=${key.windowSeconds}\n` +
        `RateLimit: "key";r=${Math.max(0, key.quota - 1)};t=${key.windowSeconds}`,
    )],
    versioning: [http('The version header', `${versionHeader}: ${API_VERSION}`)],
    problems: [{ caption: 'A problem', note: '400 · application/problem+json', code: problem, fixed: true }],
  }
}

const limitTexts: Readonly<Record<string, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key, which count toward no other policy.',
  authfail: 'Failed authentications from an address. Keys known to be valid still work.',
}

function tablesOf({ limits }: DocumentSettings): PerGuide<Markup> {
  const limitRows = Object.entries(limits).map(([name, { quota, windowSeconds }]) => ({
    name,
    note: quota === 0 ? 'off' : `${quota} in ${windowSeconds} s`,
    about: limitTexts[name],
  }))
  const scopeRows = MODULE_NAMES.map((module) => {
    const { scope, feature } = MODULES[module]
    return { name: scope, note: module, about: feature }
  })
  const problemRows = (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => {
    const { status, detail } = PROBLEMS[code]
    return { id: code, name: code, note: status, about: [detail, markup`<br>`, prose(PROBLEM_ACTIONS[code])] }
  })
  return {
    limits: table(['Policy and default', 'What it counts'], limitRows),
    scopes: table(['Scope and module', 'Purpose'], scopeRows),
    problems: table(['Code and status', 'Meaning, and what to do'], problemRows),
  }
}

/** The sections of the reference page that apply to all endpoints: the texts of guides.json, with samples and tables. */
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES, MODULES } from '../model.ts'
import { fill, type OpenApiDocument } from './document.ts'
import texts from './guides.json' with { type: 'json' }
import { type CodeBlock, codeBlock, type Markup, markup, paragraphs, prose, sampleOf, table } from './html.ts'
import type { DocumentSettings } from './model.ts'

export interface Section {
  readonly id: string
  readonly title: string
  readonly text: readonly Markup[]
  /** Beside the text on wide screens. */
  readonly code: readonly Markup[]
  /** Below both. */
  readonly below: Markup | undefined
}

interface Guide {
  readonly title: string
  readonly text: readonly string[]
  /** Text to copy, an operation with samples, or a problem. */
  readonly code: readonly (Omit<CodeBlock, 'code'> & {
    readonly code?: string
    readonly sample?: string
    readonly problem?: string
  })[]
}

/** All guides. The last one is the longest, so that every one can be scrolled to the top. */
export function guides(described: OpenApiDocument, settings: DocumentSettings): readonly Section[] {
  const { examples } = described.components
  const tables = tablesOf(settings)
  return Object.entries(fill<Record<string, Guide>>(texts, settings)).map(([id, { title, text, code }]) => ({
    id,
    title,
    text: paragraphs(text),
    code: code.flatMap(({ sample = '', problem, code, ...block }) => {
      const shown = code ??
        (problem ? JSON.stringify(examples[problem]?.value, null, 2) : sampleOf(sample, settings))
      return shown ? [codeBlock({ ...block, code: shown, fixed: block.note !== undefined })] : []
    }),
    below: tables[id],
  }))
}

const limitTexts: Readonly<Record<string, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key, which count toward no other policy.',
  authfail: 'Failed authentications from an address. Keys known to be valid still work.',
}

function tablesOf({ limits }: DocumentSettings): Readonly<Record<string, Markup>> {
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

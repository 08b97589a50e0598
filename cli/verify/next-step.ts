import { PROBLEM_ACTIONS } from '../../core/http/problem-actions.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import { pluralize, printable } from '../output/text.ts'
import { displayName } from './deployment.ts'

interface Subject {
  readonly keyId: string | undefined
  readonly partner: string
  readonly scope?: string | null
  readonly module?: string
}

/** What the operator runs about a problem, without the name of the program. */
const operatorCommands: Readonly<Partial<Record<ProblemCode, (subject: Subject) => string>>> = {
  key_revoked: ({ partner }) => `keys issue ${partner} --name NAME`,
  key_expired: ({ partner }) => `keys issue ${partner} --name NAME`,
  key_disabled: ({ keyId }) => `keys enable ${keyId}`,
  partner_suspended: ({ partner }) => `partners resume ${partner}`,
  scope_missing: ({ keyId, scope }) => `scopes grant ${keyId} ${scope}`,
  module_inactive: ({ partner, module }) => `modules activate ${partner} ${module}`,
  address_not_allowed: ({ keyId }) => `keys show ${keyId}`,
}

export function operatorRemedy(code: string, subject: Subject) {
  const words = Object.hasOwn(operatorCommands, code)
    ? operatorCommands[code as ProblemCode]!({ ...subject, keyId: subject.keyId ?? 'KEY' }).split(' ')
    : undefined
  return words && { command: words.slice(0, 2).join(' '), args: words.slice(2) }
}

/** What to do about a problem, with the operator's command; empty for an unknown one. */
export function nextStep(code: string, subject: Subject): string {
  if (!Object.hasOwn(PROBLEM_ACTIONS, code)) return ''
  const action = PROBLEM_ACTIONS[code as ProblemCode]
    .replace('in `required_scope`', () => subject.scope ?? '')
    .replace('in `required_module`', () => subject.module ?? '')
    .replaceAll('`', '')
  const command = operatorCommands[code as ProblemCode]?.({ ...subject, keyId: subject.keyId ?? 'KEY' })
  return printable(
    command === undefined ? action : `${action} The operator's command: partner-api ${command}`,
  )
}

/** When to try again after a 429. */
export function formatRetryTime(header: (name: string) => string | undefined): string {
  const seconds = header('retry-after') ?? ''
  if (!/^\d{1,9}$/.test(seconds)) {
    return `Try again ${seconds === '' ? 'later' : `at ${displayName(seconds)}`}.`
  }
  const at = new Date(Date.now() + Number(seconds) * 1_000).toISOString().slice(0, 19).replace('T', ' ')
  return `Try again in ${pluralize(Number(seconds), 'second')}, at ${at} UTC.`
}

import type { LineErrors } from '../../core/content/lines.ts'
import type { ContentKind } from '../../core/content/records.ts'
import { Failure } from '../failure.ts'
import { counted } from './text.ts'

/** Groups of equal errors, and lines of a group, that people are shown. */
const maxGroups = 50
const maxLines = 3

/** Lines that cannot be imported: for people, those with the same error together. */
export function invalidLines(kind: ContentKind, { errors, errorCount }: LineErrors): Failure {
  const groups = new Map<string, number[]>()
  for (const { line, field, reason } of errors) {
    const error = field === null ? reason : `${field} ${reason}`
    const lines = groups.get(error)
    if (lines === undefined) groups.set(error, [line])
    else lines.push(line)
  }
  const shown = [...groups].slice(0, maxGroups)
  const left = errorCount - shown.reduce((sum, [, lines]) => sum + lines.length, 0)
  const needsIndustries = kind === 'profiles' &&
    errors.some(({ reason }) => reason.includes('an industry that exists'))
  const hint = needsIndustries ? ' Import industries first: partner-api content import industries FILE' : ''
  return new Failure(
    1,
    'invalid_content',
    `Nothing was imported: ${counted(errorCount, 'error')} in the lines of ${kind}.${hint}`,
    {
      members: { lines: errors, line_error_count: errorCount },
      lines: [
        ...shown.map(([error, lines]) => `${placeOf(lines)}: ${error}`),
        ...(left > 0 ? [`… and ${counted(left, 'more', 'more')}`] : []),
      ],
    },
  )
}

function placeOf(lines: readonly number[]): string {
  if (lines.length === 1) return `line ${lines[0]}`
  const more = lines.length > maxLines ? ', …' : ''
  return `${counted(lines.length, 'line')} (${lines.slice(0, maxLines).join(', ')}${more})`
}

/** Errors in the lines of an import. */
import type { LineErrors } from '../core/content/line-reader.ts'
import { CliError } from './errors.ts'
import { pluralize } from './output/text.ts'

/** Groups of equal errors, and lines of a group, that are printed for people. */
const maxGroups = 50
const maxLines = 3

/** For people, lines with the same error are grouped. */
export function invalidLinesError(what: string, { errors, errorCount }: LineErrors, hint = ''): CliError {
  const groups = Map.groupBy(errors, ({ field, reason }) => field === null ? reason : `${field} ${reason}`)
  const shown = [...groups].slice(0, maxGroups)
  const remaining = errorCount - shown.reduce((sum, [, lines]) => sum + lines.length, 0)
  return new CliError(
    1,
    'invalid_content',
    `Nothing was imported: ${pluralize(errorCount, 'error')} in the lines of ${what}.${hint}`,
    {
      members: { lines: errors, line_error_count: errorCount },
      lines: [
        ...shown.map(([error, lines]) => `${formatLineNumbers(lines.map(({ line }) => line))}: ${error}`),
        ...(remaining > 0 ? [`… and ${pluralize(remaining, 'more', 'more')}`] : []),
      ],
    },
  )
}

function formatLineNumbers(lines: readonly number[]): string {
  if (lines.length === 1) return `line ${lines[0]}`
  const more = lines.length > maxLines ? ', …' : ''
  return `${pluralize(lines.length, 'line')} (${lines.slice(0, maxLines).join(', ')}${more})`
}

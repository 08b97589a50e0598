import { createReadStream } from 'node:fs'
import { Option } from 'commander'
import type { KeyImportOptions } from '../../core/admin/import-keys.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { usageError } from '../errors.ts'
import {
  importing,
  invalidLinesError,
  readContentLines,
  requireOwnFile,
  unreadableFileError,
} from '../files.ts'
import { formatCount, joinList } from '../output/text.ts'

interface ImportOptions extends Pick<KeyImportOptions, 'algorithm' | 'prefix' | 'update' | 'dryRun'> {
  readonly secretFile?: string
}

export function defineImport(keys: CliCommand): void {
  keys.subcommand('import', 'Import keys of another system by their digests, all lines or none')
    .argument('<file>', 'A file with one JSON object per line, or - for standard input')
    .addOption(
      new Option('--algorithm <algorithm>', 'Digest algorithm of lines that do not name one')
        .choices(['sha256', 'hmac-sha256']),
    )
    .option('--prefix <prefix>', 'Start of the keys that is not digested, for lines that do not name one')
    .option(
      '--secret-file <file>',
      'File with the secret of hmac-sha256; a line end after the secret is ignored',
    )
    .option('--update', 'Change keys that differ from their lines (default: only list them)')
    .option('--dry-run', 'Only check the lines')
    .change(importFile)
    .details(`
A line has partner, name and digest (hexadecimal or base64), and may have algorithm, prefix, scopes, environment,
expires_at, created_at, last_used_at, allow, limits, owner, tags and hint (the last four characters). Importing the same
lines again changes nothing; keys that differ from their lines are listed. Import keys with 128 or more random bits only: the digest
of a weaker key reveals it.`)
    .examples(
      'partner-api keys import keys.jsonl --algorithm sha256 --dry-run',
      'partner-api keys import keys.jsonl --algorithm sha256 --prefix sk_live_',
      'partner-api keys import keys.jsonl --algorithm hmac-sha256 --secret-file hmac.secret',
    )
}

const algorithmAdvice =
  'Lines without an algorithm need --algorithm, and hmac-sha256 needs --secret-file FILE.'

const importFile: StoreAction<[string, ImportOptions]> = async (store, invocation, file, options) => {
  const { secretFile, update = false, dryRun = false, ...defaults } = options
  const secret = secretFile === undefined ? undefined : await readSecret(secretFile)
  const { importKeys } = await import('../../core/admin/import-keys.ts')
  const outcome = await importing(invocation.output, (report) => {
    report('Reading keys …')
    const given = { ...defaults, update, dryRun, secret }
    return importKeys(store, readContentLines(file, 'keys', invocation), invocation.operator, given)
  })
  if ('errors' in outcome) {
    const isAboutAlgorithm = outcome.errors.some(({ field }) => field === 'algorithm')
    throw invalidLinesError('keys', outcome, { advice: isAboutAlgorithm ? algorithmAdvice : undefined })
  }
  const changeOfDiffering = update ? 'updated' : 'differs'
  const counts = { issued: 0, updated: 0, differs: 0, unchanged: outcome.unchanged }
  const lines = outcome.lines.map(({ line, key: { id, partner, name }, fields }) => {
    const change = fields === undefined ? 'issued' : changeOfDiffering
    counts[change]++
    const row = { line, change, id: fields || !dryRun ? id : null, partner, name }
    return fields === undefined ? row : { ...row, fields }
  })
  const shown = outcome.lines.flatMap(({ line, key: { id }, fields }) =>
    fields === undefined ? [] : [`line ${line}: key ${id} ${changeOfDiffering} in ${joinList(fields)}\n`]
  )
  const sums = Object.entries(counts).map(([change, count]) => `${formatCount(count)} ${change}`)
  const notes: string[] = []
  if (counts.differs > 0) notes.push('Keys that differ were not changed. To update them, pass --update.')
  if (dryRun) notes.push('Nothing was written.')
  return {
    data: { dry_run: dryRun, ...counts, lines },
    text: `${shown.join('')}keys: ${sums.join(', ')}\n`,
    notes: () => notes,
  }
}

/** More bytes are another file. */
const maxSecretBytes = 4_096

/** Editors end a file with a line end, which is not part of the secret. */
async function readSecret(file: string): Promise<Uint8Array> {
  requireOwnFile(file)
  const bytes = await createReadStream(file, { end: maxSecretBytes }).toArray().catch((error) => {
    throw unreadableFileError(file, error)
  })
  const secret = Buffer.concat(bytes)
  if (secret.length > maxSecretBytes) throw usageError(`The file ${file} is too long for a secret.`)
  if (secret.at(-1) !== 10) return secret
  return secret.subarray(0, secret.at(-2) === 13 ? -2 : -1)
}

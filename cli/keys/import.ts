import { createReadStream } from 'node:fs'
import { Option } from 'commander'
import type { KeyImportOptions, KeyImportReport } from '../../core/admin/import-keys.ts'
import type { Store } from '../../core/ports/store.ts'
import { changeStore, type CliCommand, type CommandResult, type Invocation } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { describeFileError, readContentLines } from '../files.ts'
import { optionParser } from '../options.ts'
import { formatTable, pluralize } from '../output/text.ts'
import { withStore } from '../store.ts'

/** New keys that a dry run prints for people. */
const maxShown = 100

interface ImportOptions extends Pick<KeyImportOptions, 'algorithm' | 'prefix' | 'dryRun'> {
  readonly secretFile?: string
}

/** `keys import`. */
export function defineImport(keys: CliCommand): void {
  keys.command('import')
    .description('Import keys of another system by their digests, all lines or none')
    .argument('<file>', 'A file with one JSON object per line, or - for standard input')
    .addOption(
      new Option('--algorithm <algorithm>', 'Algorithm of the digests in lines that name none')
        .choices(['sha256', 'hmac-sha256']),
    )
    .option(
      '--prefix <prefix>',
      'Start of the keys that is not digested, for lines that name none (default: the whole key is digested)',
      optionParser(
        'It must have up to 64 visible ASCII characters and no comma.',
        (text) => /^[!-+\--~]{0,64}$/.test(text) ? text : undefined,
      ),
    )
    .option(
      '--secret-file <file>',
      'The secret of hmac-sha256: all bytes of the file but a line end after them',
    )
    .addOption(new Option('--dry-run', 'Only check the lines').conflicts('wait'))
    .waits()
    .act(importFile)
    .details(`
A line has partner, name and digest (hexadecimal or base64), and may have algorithm, prefix, scopes, environment,
expires_at, created_at, last_used_at, allow, limits and hint (the last four characters). Importing the same lines again
changes nothing. Import keys with 128 or more random bits only: the digest of a weaker key reveals it.`)
    .examples(
      'partner-api keys import keys.jsonl --algorithm sha256 --dry-run',
      'partner-api keys import keys.jsonl --algorithm sha256 --prefix sk_live_',
      'partner-api keys import keys.jsonl --algorithm hmac-sha256 --secret-file hmac.secret',
    )
}

async function importFile(
  invocation: Invocation,
  file: string,
  { secretFile, dryRun = false, ...defaults }: ImportOptions,
): Promise<void> {
  const { actor, io, output } = invocation
  const secret = secretFile === undefined ? undefined : await readSecret(secretFile)
  const importLines = async (store: Store): Promise<CommandResult> => {
    const { importKeys } = await import('../../core/admin/import-keys.ts')
    const lines = readContentLines(file, io.stdin)
    const outcome = await output.progress((report) => {
      report(dryRun ? 'Checking keys …' : 'Importing keys …')
      return importKeys(store, lines, { actor }, { ...defaults, secret, dryRun })
    })
    if (!('errors' in outcome)) return importResult(outcome, dryRun)
    const { invalidLinesError } = await import('../line-errors.ts')
    throw invalidLinesError('keys', outcome)
  }
  if (!dryRun) return await changeStore(invocation, {}, importLines)
  await withStore(invocation, {}, async (store) => {
    const { data, text, notes } = await importLines(store)
    await output.result(data, text)
    for (const note of await notes!()) output.note(note)
  })
}

function importResult({ issued, unchanged }: KeyImportReport, dryRun: boolean): CommandResult {
  const lines = issued.map(({ line, key: { id, partner, name } }) => ({
    line,
    id: dryRun ? null : id,
    partner,
    name,
  }))
  const counts = `keys: ${issued.length.toLocaleString('en')} issued, ${
    unchanged.toLocaleString('en')
  } unchanged`
  const data = { dry_run: dryRun, issued: issued.length, unchanged, lines }
  if (!dryRun) return { data, text: `${counts}\n` }
  const shown = lines.slice(0, maxShown).map(({ line, partner, name }) => [String(line), partner, name])
  const more = pluralize(lines.length - shown.length, 'more', 'more')
  return {
    data,
    text: shown.length === 0 ? '' : formatTable(['line', 'partner', 'name'], shown),
    notes: () => [
      ...(lines.length > shown.length ? [`… and ${more}. --json lists all of them.`] : []),
      `Nothing was written. ${counts}.`,
    ],
  }
}

/** More bytes are a wrong file. */
const maxSecretBytes = 4_096

/** Editors end a file with a line end, which is no part of the secret. */
async function readSecret(file: string): Promise<Uint8Array> {
  try {
    const bytes = Buffer.concat(await createReadStream(file, { end: maxSecretBytes }).toArray())
    if (bytes.length > maxSecretBytes) throw usageError(`The file ${file} is too long for a secret.`)
    const end = bytes.at(-1) === 10 ? bytes.at(-2) === 13 ? -2 : -1 : bytes.length
    return bytes.subarray(0, end)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(1, 'unreadable_file', `${file} can't be read: ${describeFileError(error)}.`)
  }
}

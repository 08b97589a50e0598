import type { Command } from 'commander'
import { KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import { action, type Invocation } from '../command.ts'
import { usageError } from '../errors.ts'
import { printNote, printResult } from '../output/print.ts'
import { formatDetails } from '../output/text.ts'
import { schemaStatus, withStore } from '../store.ts'
import { parseDurableUrl } from '../store-url.ts'

/** `migrate` and `migrate --status`. */
export function define(migrate: Command): void {
  migrate
    .option('--status', 'Only show the schema version and pending migrations')
    .option(
      '--key-prefix <prefix>',
      'Prefix of all keys of this store; only before the first key (default: spk)',
    )
    .addHelpText(
      'after',
      `
serve, demo, partners create and content import do this on their own.

Back up a SQLite store that is in use with SQLite's own tools (sqlite3 FILE ".backup COPY", or VACUUM INTO), not with
cp. Stop the server before you replace its file. A PostgreSQL store is the schema partner_api of its database, which
pg_dump can back up.

Examples:
  $ partner-api migrate --status
  $ partner-api --store sqlite:/var/lib/partner-api.db migrate --key-prefix acme
  $ partner-api --store postgres://partner_api@db.example/partner_api migrate`,
    )
    .action(action(migrateStore))
}

async function migrateStore(
  invocation: Invocation,
  { status = false, keyPrefix }: { readonly status?: boolean; readonly keyPrefix?: string },
): Promise<void> {
  if (keyPrefix !== undefined && !KEY_PREFIX_PATTERN.test(keyPrefix)) {
    throw usageError('A key prefix is 2–10 lower-case letters or digits, a letter first.')
  }
  if (status && keyPrefix !== undefined) {
    throw usageError('--status changes nothing: leave out --key-prefix.')
  }
  const address = parseDurableUrl(
    invocation.storeUrl,
    'A memory: store has no schema and ends with the command. Use sqlite:FILE or postgres://….',
  )
  if (!status) await withStore(invocation, { create: true, keyPrefix }, async () => {})
  const { current, latest, pending } = await schemaStatus(address)
  await printResult(
    invocation,
    { current, latest, pending },
    formatDetails([
      ['schema', `version ${current} of ${latest}`],
      ['pending', pending.join(' ') || 'nothing'],
    ]),
  )
  if (status && current < latest) printNote('To migrate it: partner-api migrate')
}

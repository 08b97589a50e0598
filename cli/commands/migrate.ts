import type { Command } from 'commander'
import { KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import { action } from '../command.ts'
import { usageError } from '../errors.ts'
import { type Invocation, parseStoreUrl } from '../invocation.ts'
import { printNote, printResult } from '../output/print.ts'
import { formatDetails } from '../output/text.ts'
import { openDurableStore, schemaStatus } from '../store.ts'

/** `migrate` and `migrate --status`. */
export function define(migrate: Command): void {
  migrate
    .option('--status', 'Change nothing, say what would be done')
    .option(
      '--key-prefix <prefix>',
      'What every key of this store starts with; before the first key (default: spk)',
    )
    .addHelpText(
      'after',
      `
serve, demo, partners create and content import do this by themselves.

A SQLite store that is being served is backed up with SQLite's own means (sqlite3 FILE ".backup COPY", or VACUUM INTO)
and not with cp. Stop the server before another file takes its place. A PostgreSQL store is the schema partner_api of its
database, which pg_dump knows how to back up.

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
  const address = parseStoreUrl(invocation.storeUrl)
  if (address.kind === 'memory') {
    throw usageError(
      'A memory: store has no schema and ends with the command. Use sqlite:FILE or postgres://….',
    )
  }
  if (!status) {
    const store = await openDurableStore(address, {
      create: true,
      ...(keyPrefix !== undefined && { keyPrefix }),
    })
    await store.close()
  }
  const { current, latest, pending } = await schemaStatus(address)
  await printResult(
    invocation,
    { current, latest, pending },
    formatDetails([['schema', `version ${current} of ${latest}`], [
      'pending',
      pending.join(' ') || 'nothing',
    ]]),
  )
  if (status && current < latest) printNote('To bring it up to date: partner-api migrate')
}

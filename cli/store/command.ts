import { createKeyAdministration } from '../../core/admin/keys.ts'
import { formatDuration } from '../../core/lib/time.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand } from '../command.ts'
import type { CommandResult } from '../output/print.ts'
import { formatDetails } from '../output/text.ts'
import { backUp, reconcile, restore } from './backup.ts'
import { copy } from './copy.ts'

const asBackedUp = 'Accept again what was revoked or restricted since the backup; asks for confirmation'

export function define(store: CliCommand): void {
  store
    .subcommand(
      'backup',
      'Back up a SQLite store while servers use it; for PostgreSQL, print the commands to run',
    )
    .argument('<file>', 'The backup')
    .option('--force', 'Replace an existing file')
    .act(backUp)
    .details(`
Copies one state of the store, and checks the copy and its audit log. The backup is a store itself, and only you can
read it. Keep its seal elsewhere, for audit verify --seal.`)
    .examples('partner-api store backup monday.db')

  store.subcommand(
    'copy',
    'Copy a store that no server uses to another location, and check that both are equal',
  )
    .requiredOption('--from <url>', 'The store to copy, which is not changed')
    .requiredOption('--to <url>', 'The new store, which must be missing or empty')
    .act(copy)
    .details(`
Copies partners, keys, content, signups, counts, the audit log, and the settings that keys and cursors depend on. Stop
all servers of the store first. The new store cannot be used until the copy is complete: if it is interrupted, drop the
new store, and start again.`)
    .examples(
      'partner-api store copy --from sqlite:partner-api.db --to postgres://partner_api@db.internal/partner_api',
      'partner-api store copy --from postgres://partner_api@db.internal/partner_api --to sqlite:partner-api.db',
    )

  store
    .subcommand('restore', 'Restore a SQLite store from a backup; for PostgreSQL, print the commands to run')
    .argument('<file>', 'The backup, which is not changed')
    .option('--replace', 'Replace an existing store, and keep it under another name')
    .option('--dry-run', 'Only check the backup, and show what would be done')
    .option('--as-backed-up', asBackedUp)
    .option('-y, --yes', 'Do not ask for confirmation of --as-backed-up')
    .option(
      '--force',
      'Restore even if tables are not those of a store, audit verify fails, or the replaced store cannot be read',
    )
    .act(restore)
    .details(`
Fails while another process has the store open. The restored store accepts nothing that the replaced one refuses: keys
and partners that were revoked, disabled, suspended or restricted since the backup stay so. Webhooks are disabled, and
one-time links revoked. Prints the entries of the audit log since the backup, which the restored store does not have.`)
    .examples(
      'partner-api store restore monday.db --dry-run',
      'partner-api store restore monday.db --replace',
      'partner-api store restore monday.db --replace --as-backed-up --yes',
    )

  store.subcommand(
    'reconcile',
    'After pg_restore: have the restored store refuse what the replaced one refuses',
  )
    .requiredOption('--replaced <url>', 'The store that was replaced, which is not changed')
    .option('--as-backed-up', asBackedUp)
    .option('-y, --yes', 'Do not ask for confirmation of --as-backed-up')
    .option('--force', 'Go on even if the replaced store cannot be read')
    .act(reconcile)
    .details(`
Run it on the restored store, before anything serves that. It does what store restore does by itself, in one
transaction.`)
    .examples(
      'partner-api --store postgres://partner_api@db.internal/restored ' +
        'store reconcile --replaced postgres://partner_api@db.internal/partner_api',
    )

  store.subcommand('show', 'Show the settings of the store').read(showSettings)
    .examples('partner-api store show')
  store.subcommand('update', 'Change the settings of the store')
    .option('--max-key-lifetime <duration>', 'Longest lifetime of keys that are issued, imported or updated')
    .option('--no-max-key-lifetime', 'Remove the limit')
    .requiresChange()
    .change(async (opened, { operator }, { maxKeyLifetime }: { readonly maxKeyLifetime: number | false }) => {
      const { setMaxLifetime } = createKeyAdministration(opened, operator)
      await setMaxLifetime(maxKeyLifetime === false ? undefined : maxKeyLifetime)
      return await showSettings(opened)
    })
    .details('Existing keys do not change. To see when they end: partner-api keys list')
    .examples('partner-api store update --max-key-lifetime 365d')
}

async function showSettings(store: Store): Promise<CommandResult> {
  const prefix = store.settings.keyPrefix
  const ms = await store.maxKeyLifetimeMs()
  const details = [['key prefix', prefix], ['max key lifetime', ms ? formatDuration(ms) : 'none']] as const
  return { data: { key_prefix: prefix, max_key_lifetime_ms: ms ?? null }, text: formatDetails(details) }
}

import { KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import type { Action, CliCommand } from '../command.ts'
import { optionParser } from '../options.ts'
import { formatDetails } from '../output/text.ts'
import { schemaStatus, withStore } from './open.ts'
import { parseDurableUrl } from './url.ts'

interface MigrateOptions {
  readonly status?: boolean
  readonly keyPrefix?: string
}

const keyPrefixOption = optionParser(
  'It must be 2–10 lower-case letters or digits, starting with a letter.',
  (text) => KEY_PREFIX_PATTERN.test(text) ? text : undefined,
)

export function define(migrate: CliCommand): void {
  migrate
    .option('--status', 'Only show the schema version and pending migrations')
    .option(
      '--key-prefix <prefix>',
      'Prefix of all keys of this store; only before the first key (default: spk)',
      keyPrefixOption,
    )
    .act(migrateStore)
    .details(`
serve, demo, partners create and content import also migrate the store. Older versions cannot use a migrated store: make
a copy with store backup first.`)
    .examples(
      'partner-api migrate --status',
      'partner-api --store sqlite:/var/lib/partner-api.db migrate --key-prefix acme',
      'partner-api --store postgres://partner_api@db.example/partner_api migrate',
    )
}

const migrateStore: Action<[MigrateOptions]> = async (invocation, { status = false, keyPrefix }) => {
  const { storeUrl, io: { env }, output } = invocation
  const address = parseDurableUrl(
    storeUrl,
    'A memory: store has no schema and ends with the command. Use sqlite:FILE or postgres://….',
  )
  if (!status) {
    await output.progress((report) => {
      report('Migrating the store …')
      return withStore(invocation, { create: true, keyPrefix }, async () => {})
    })
  }
  const { current, latest, pending } = await schemaStatus(address, env)
  const details = [
    ['schema', `version ${current} of ${latest}`],
    ['pending', pending.join(' ') || 'nothing'],
  ] as const
  const notes = status && current < latest ? [`To migrate it: ${output.command('migrate')}`] : []
  return { data: { current, latest, pending }, text: formatDetails(details), notes: () => notes }
}

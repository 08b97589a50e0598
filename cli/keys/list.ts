import { Option } from 'commander'
import { findKey, findPartner } from '../../core/admin/apply.ts'
import { endOf, keyState } from '../../core/keys/lifecycle.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import { type Environment, type Key, KEY_STATES, type KeyState, type Scope } from '../../core/model.ts'
import type { KeyFilter } from '../../core/ports/changes.ts'
import { readPages, type Store } from '../../core/ports/store.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import { type PageOptions, withPages } from '../options.ts'
import { formatRelative } from '../output/text.ts'
import { timeOf } from '../store/open.ts'

/** Durations are milliseconds. */
interface Options extends PageOptions<string> {
  readonly expiring?: number
  readonly unused?: number
  readonly state?: readonly KeyState[]
  readonly scope?: Scope
  readonly environment?: Environment
}

/** A key with its requests of the last seven days. */
interface UsedKey extends Key {
  readonly requests: number
  readonly errors: number
}

export function defineList(keys: CliCommand): void {
  const list = keys.subcommand(
    'list [partner]',
    'List keys, oldest first: of one partner or of all, and only those that the options select',
  )
    .option('--expiring <duration>', 'In force, and ending within this time')
    .option('--unused <duration>', 'In force, issued longer ago than this, and not used since')
    .addOption(new Option('--state <state...>', 'In one of these states').choices(KEY_STATES))
    .option('--scope <scope>', 'Holding this scope')
    .addOption(new Option('--environment <kind>', 'Of this kind').choices(['live', 'test']))
  withPages(list, 'key')
    .read(printKeys)
    .details(`
ENDS is when the key expires, or when its overlap after a rotation ends, whichever is earlier. 7 DAYS is the number of
its requests on the last seven days (UTC), today included; --json has requests_7d and errors_7d. A key is in force while
it is active or retiring.`)
    .examples(
      'partner-api keys list acme',
      'partner-api keys list --expiring 14d',
      'partner-api keys list --unused 90d --environment live --json',
      'partner-api keys list --state revoked expired --scope read:banner --limit 20',
    )
}

const printKeys: StoreAction<[string | undefined, Options], void> = async (
  store,
  invocation,
  partner,
  options,
) => {
  const { expiring, unused, state: states, scope, environment, after, limit } = options
  if (partner !== undefined) await findPartner(store, partner)
  const start = after === undefined ? undefined : (await findKey(store, after)).key
  const now = timeOf(store)
  const selection = {
    ...{ environment, scope, states },
    endsBefore: expiring === undefined ? undefined : now + expiring,
    unusedSince: unused === undefined ? undefined : now - unused,
  } satisfies KeyFilter
  const filter: KeyFilter = { now, partner, ...selection }
  const isSelective = after !== undefined || Object.values(selection).some((value) => value !== undefined)
  await invocation.output.page<UsedKey>({
    read: (pageRows) =>
      readPages(
        async (last, rows) => addUsage(store, await store.listKeys(filter, last ?? start, rows), now),
        pageRows,
      ),
    toJson: ({ requests, errors, ...key }) => {
      return { ...keyJson(key, now), requests_7d: requests, errors_7d: errors }
    },
    headings: ['id', 'partner', 'name', 'kind', 'hint', 'state', 'scopes', 'ends', 'last used', '7 days'],
    toCells: (key) => [
      ...[key.id, key.partner, key.name, key.environment, key.hint && `…${key.hint}`, keyState(key, now)],
      ...[String(key.scopes.length), formatEnd(key, now), formatRelative(key.lastUsedAt, now)],
      String(key.requests),
    ],
    rows: 'keys',
    after: ({ id }) => id,
    none: isSelective
      ? 'There are no such keys.'
      : `There are no keys yet. To issue one: ${invocation.output.command('keys issue PARTNER --name NAME')}`,
  }, limit)
}

/** Reads the usage of a page of keys at once. */
async function addUsage(store: Store, keys: readonly Key[], now: number): Promise<UsedKey[]> {
  const used = new Map(keys.map((key) => [key.id, { ...key, requests: 0, errors: 0 }]))
  const from = utcDay(now - 6 * MS_PER_DAY)
  for (const { keyId, requests, errors } of await store.keyUsage([...used.keys()], from, utcDay(now))) {
    const key = used.get(keyId)!
    key.requests += requests
    key.errors += errors
  }
  return [...used.values()]
}

/** When a key stops working, by its expiry or by a rotation. A revoked key has stopped already. */
function formatEnd(key: Key, now: number): string {
  return key.state === 'revoked' ? '–' : formatRelative(endOf(key), now)
}

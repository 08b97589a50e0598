import { findKey } from '../../core/admin/apply.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import { endOf, keyState } from '../../core/keys/lifecycle.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { type PageOptions, withPages } from '../options.ts'
import { formatRelative } from '../output/text.ts'
import { timeOf } from '../store/open.ts'
import { type RelatedKey, relativesJson, withRelatives } from './relatives.ts'
import { type SelectionOptions, toFilter, withSelection } from './selection.ts'

type ListOptions = PageOptions<string> & SelectionOptions

interface UsedKey extends RelatedKey {
  readonly requests: number
  readonly errors: number
}

export function defineList(keys: CliCommand): void {
  const list = keys.subcommand(
    'list [partner]',
    'List keys, oldest first, of one partner or of all; options select some',
  )
  withPages(withSelection(list), 'key')
    .read(printKeys)
    .details(`
ENDS is when the key expires, or when its overlap after a rotation ends, whichever is earlier. 7 DAYS is the number of
its requests on the last seven days (UTC), today included; --json has requests_7d and errors_7d. A key is in force while
it is active or retiring. PREDECESSOR and SUCCESSOR are the keys that it has replaced and is replaced by, with their last
use.`)
    .examples(
      'partner-api keys list acme',
      'partner-api keys list --expiring 14d',
      'partner-api keys list --unused 90d --environment live --json',
      'partner-api keys list acme --tag shop',
      'partner-api keys list --state revoked expired --scope read:banner --limit 20',
    )
}

const printKeys: StoreAction<[string | undefined, ListOptions], void> = async (
  store,
  invocation,
  partner,
  options,
) => {
  const { limit, ...selection } = options
  const now = timeOf(store)
  const filter = await toFilter(store, { partner, ...selection }, now)
  const start = options.after === undefined ? undefined : (await findKey(store, options.after)).key
  const isSelective = Object.values(selection).some((value) => value !== undefined)
  await invocation.output.page<UsedKey>({
    read: async (last, rows) => addUsage(store, await store.listKeys(filter, last ?? start, rows), now),
    toJson: ({ requests, errors, ...key }) => {
      const counts = { requests_7d: requests, errors_7d: errors }
      return { ...keyJson(key, now), ...counts, ...relativesJson(key, now) }
    },
    headings: [
      'id',
      'partner',
      'name',
      'kind',
      'hint',
      'state',
      'scopes',
      'ends',
      'last used',
      '7 days',
      'predecessor',
      'successor',
    ],
    toCells(key) {
      const { id, partner, name, environment, hint, scopes, requests } = key
      // A revoked key has stopped already.
      const ends = key.state === 'revoked' ? '–' : formatRelative(endOf(key), now)
      const used = formatRelative(key.lastUsedAt, now)
      const state = keyState(key, now)
      const use = [String(scopes.length), ends, used, String(requests)]
      const relatives = [key.predecessor, key.successor].map((each) => formatKey(each, now))
      return [id, partner, name, environment, hint && `…${hint}`, state, ...use, ...relatives]
    },
    rows: 'keys',
    after: ({ id }) => id,
    none: isSelective
      ? 'There are no such keys.'
      : `There are no keys yet. To issue one: ${invocation.output.command('keys issue PARTNER --name NAME')}`,
  }, limit)
}

async function addUsage(store: Store, keys: readonly Key[], now: number): Promise<UsedKey[]> {
  const related = await withRelatives(store, keys)
  const used = new Map(related.map((key) => [key.id, { ...key, requests: 0, errors: 0 }]))
  const from = utcDay(now - 6 * MS_PER_DAY)
  for (const { keyId, requests, errors } of await store.keyUsage([...used.keys()], from, utcDay(now))) {
    const key = used.get(keyId)!
    key.requests += requests
    key.errors += errors
  }
  return [...used.values()]
}

function formatKey(key: Key | undefined, now: number): string {
  if (key === undefined) return '–'
  const use = key.lastUsedAt === undefined ? 'never used' : `used ${formatRelative(key.lastUsedAt, now)}`
  return `${key.id}, ${use}`
}

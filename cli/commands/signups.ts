import { findPartner } from '../../core/admin/apply.ts'
import { readPages } from '../../core/lib/read-pages.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { integerBetween } from '../options.ts'
import { signupJson } from '../output/json.ts'
import { formatTime, printableJson } from '../output/text.ts'

/** `signups list` and `export`. */
export function define(signups: CliCommand): void {
  signups.command('list')
    .description('List signups, newest first')
    .option('--partner <slug>', 'Only signups of this partner')
    .option('--limit <n>', 'Number of signups, 1 to 100000', integerBetween(1, 100_000), 50)
    .read(list)
    .examples('partner-api signups list', 'partner-api signups list --partner acme --limit 10 --json')

  signups.command('export')
    .description('Print signups with all their fields as JSON Lines, newest first')
    .option('--partner <slug>', 'Only signups of this partner')
    .read(exportAll)
    .details(
      'The output contains personal data. Signups that were made with a test key have "environment": "test".',
    )
    .examples(
      'partner-api signups export > signups.jsonl',
      `partner-api signups export --partner acme | jq -r 'select(.environment == "live") | .email'`,
    )
}

async function list(
  store: Store,
  { output }: Invocation,
  { partner, limit }: { readonly partner?: string; readonly limit: number },
): Promise<void> {
  const { last, hasMore } = await output.table(
    readSignups(store, partner, limit + 1),
    signupJson,
    ['id', 'received', 'partner', 'kind', 'name', 'email', 'company', 'country', 'plan'],
    ({ id, createdAt, partner, environment, name, email, company = '', country = '', plan = '' }) => [
      ...[id, formatTime(createdAt), partner, environment, name, email, company, country, plan],
    ],
    limit,
  )
  if (last === undefined) output.note('There are no signups yet.')
  if (hasMore) output.note('There are older signups: --limit shows more, signups export all of them.')
}

async function exportAll(
  store: Store,
  { output }: Invocation,
  { partner }: { readonly partner?: string },
): Promise<void> {
  const toText = (signups: readonly Signup[]) =>
    signups.map((signup) => `${printableJson(JSON.stringify(signupJson(signup)))}\n`).join('')
  const { last } = await output.list(readSignups(store, partner), signupJson, toText)
  if (last === undefined && !output.json) output.note('There are no signups yet.')
}

/** @throws {AdminError} `partner_not_found` */
async function* readSignups(
  store: Store,
  partner: string | undefined,
  maxCount?: number,
): AsyncGenerator<Signup> {
  if (partner !== undefined) await findPartner(store, partner)
  yield* readPages<Signup>((after, limit) => store.listSignups(partner, after, limit), maxCount)
}

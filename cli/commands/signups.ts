import type { Command } from 'commander'
import { findPartner } from '../../core/admin/apply.ts'
import { readPages } from '../../core/lib/read-pages.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import { action, type Invocation } from '../command.ts'
import { integerBetween } from '../options.ts'
import { signupJson } from '../output/json.ts'
import { printList, printNote } from '../output/print.ts'
import { createTableFormatter, formatTime, printableJson } from '../output/text.ts'
import { withStore } from '../store.ts'

/** `signups list` and `export`. */
export function define(signups: Command): void {
  signups.command('list')
    .description('List signups, newest first')
    .option('--partner <slug>', 'Only signups of this partner')
    .option('--limit <n>', 'Number of signups, 1 to 100000', integerBetween(1, 100_000), 50)
    .addHelpText(
      'after',
      `
Examples:
  $ partner-api signups list
  $ partner-api signups list --partner acme --limit 10 --json`,
    )
    .action(action(list))

  signups.command('export')
    .description('Print signups with all their fields as JSON Lines, newest first')
    .option('--partner <slug>', 'Only signups of this partner')
    .addHelpText(
      'after',
      `
The output contains personal data. Signups that were made with a test key have "environment": "test".

Examples:
  $ partner-api signups export > signups.jsonl
  $ partner-api signups export --partner acme | jq -r 'select(.environment == "live") | .email'`,
    )
    .action(action(exportAll))
}

function list(
  invocation: Invocation,
  { partner, limit }: { readonly partner?: string; readonly limit: number },
): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const addRows = createTableFormatter(
      ['id', 'received', 'partner', 'kind', 'name', 'email', 'company', 'country', 'plan'],
    )
    const toText = (signups: readonly Signup[]) =>
      addRows(signups.map((signup) => [
        signup.id,
        formatTime(signup.createdAt),
        signup.partner,
        signup.environment,
        signup.name,
        signup.email,
        signup.company ?? '',
        signup.country ?? '',
        signup.plan ?? '',
      ]))
    const signups = readSignups(store, partner, limit + 1)
    const { last, hasMore } = await printList(invocation, signups, signupJson, toText, limit)
    if (last === undefined) printNote('There are no signups yet.')
    if (hasMore) printNote('There are older signups: --limit shows more, signups export all of them.')
  })
}

function exportAll(invocation: Invocation, { partner }: { readonly partner?: string }): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const toText = (signups: readonly Signup[]) =>
      signups.map((signup) => `${printableJson(JSON.stringify(signupJson(signup)))}\n`).join('')
    const { last } = await printList(invocation, readSignups(store, partner), signupJson, toText)
    if (last === undefined && !invocation.json) printNote('There are no signups yet.')
  })
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

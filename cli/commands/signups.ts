import type { Command } from 'commander'
import { findPartner } from '../../core/admin/apply.ts'
import { readPages } from '../../core/lib/read-pages.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import { action } from '../command.ts'
import type { Invocation } from '../invocation.ts'
import { integerBetween } from '../options.ts'
import { signupJson } from '../output/json.ts'
import { printList, printNote } from '../output/print.ts'
import { createTableFormatter, formatTime, printableJson } from '../output/text.ts'
import { withStore } from '../store.ts'

/** `signups list` and `export`. */
export function define(signups: Command): void {
  signups.command('list')
    .description('List signups, newest first')
    .option('--partner <slug>', 'Only those of this partner')
    .option('--limit <n>', 'How many, 1 to 100000', integerBetween(1, 100_000), 50)
    .addHelpText(
      'after',
      `
Examples:
  $ partner-api signups list
  $ partner-api signups list --partner acme --limit 10 --json`,
    )
    .action(action(list))

  signups.command('export')
    .description('Print signups with all that was sent, newest first, as JSON Lines')
    .option('--partner <slug>', 'Only those of this partner')
    .addHelpText(
      'after',
      `
They hold what people wrote about themselves. Those that a test key made have "environment": "test".

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
    const headings = ['id', 'received', 'partner', 'kind', 'name', 'email', 'company', 'country', 'plan']
    const addRows = createTableFormatter(headings)
    const text = (signups: readonly Signup[]) =>
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
    const { last, hasMore } = await printList(invocation, signups, { toJson: signupJson, text }, limit)
    if (last === undefined) printNote('There are no signups yet.')
    if (hasMore) printNote('There are earlier ones: --limit shows more, signups export all of them.')
  })
}

function exportAll(invocation: Invocation, { partner }: { readonly partner?: string }): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const text = (signups: readonly Signup[]) =>
      signups.map((signup) => `${printableJson(JSON.stringify(signupJson(signup)))}\n`).join('')
    const { last } = await printList(invocation, readSignups(store, partner), { toJson: signupJson, text })
    if (last === undefined && !invocation.json) printNote('There are no signups yet.')
  })
}

/** @param maxCount How many are printed at most. @throws {Refusal} `partner_not_found` */
async function* readSignups(
  store: Store,
  partner: string | undefined,
  maxCount?: number,
): AsyncGenerator<Signup> {
  if (partner !== undefined) await findPartner(store, partner)
  yield* readPages<Signup>((after, limit) => store.listSignups(partner, after, limit), maxCount)
}

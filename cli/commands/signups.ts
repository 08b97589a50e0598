import type { Command } from 'commander'
import { findPartner } from '../../core/admin/find.ts'
import type { Store } from '../../core/ports.ts'
import { readPages } from '../../core/read-pages.ts'
import type { Signup } from '../../core/signups/signup.ts'
import { integerBetween } from '../input/arguments.ts'
import { action, type Invocation } from '../invocation.ts'
import { printList, printNote } from '../output/print.ts'
import { createTable } from '../output/table.ts'
import { printableJson, readableTime } from '../output/text.ts'
import { signupWire } from '../output/wire.ts'
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
    const addRows = createTable(headings)
    const text = (signups: readonly Signup[]) =>
      addRows(signups.map((signup) => [
        signup.id,
        readableTime(signup.createdAt),
        signup.partner,
        signup.environment,
        signup.name,
        signup.email,
        signup.company ?? '',
        signup.country ?? '',
        signup.plan ?? '',
      ]))
    const signups = readSignups(store, partner, limit + 1)
    const { last, hasMore } = await printList(invocation, signups, { wire: signupWire, text }, limit)
    if (last === undefined) printNote('There are no signups yet.')
    if (hasMore) printNote('There are earlier ones: --limit shows more, signups export all of them.')
  })
}

function exportAll(invocation: Invocation, { partner }: { readonly partner?: string }): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const text = (signups: readonly Signup[]) =>
      signups.map((signup) => `${printableJson(JSON.stringify(signupWire(signup)))}\n`).join('')
    const { last } = await printList(invocation, readSignups(store, partner), { wire: signupWire, text })
    if (last === undefined && !invocation.json) printNote('There are no signups yet.')
  })
}

/** @param wanted How many are printed at most. @throws {Refusal} `partner_not_found` */
async function* readSignups(
  store: Store,
  partner: string | undefined,
  wanted?: number,
): AsyncGenerator<Signup> {
  if (partner !== undefined) await findPartner(store, partner)
  yield* readPages<Signup>((after, limit) => store.listSignups(partner, after, limit), wanted)
}

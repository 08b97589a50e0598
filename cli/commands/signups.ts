import type { Command } from 'commander'
import { findPartner } from '../../core/admin/find.ts'
import type { Store } from '../../core/ports.ts'
import type { Signup } from '../../core/signups/signup.ts'
import { integerBetween } from '../input/integer.ts'
import { type Invocation, invocationOf } from '../invocation.ts'
import { readableTime } from '../output/readable.ts'
import { printNote, printResult, write } from '../output/print.ts'
import { table } from '../output/table.ts'
import { printableJson } from '../output/text.ts'
import { signupWire } from '../output/wire.ts'
import { withStore } from '../store.ts'

interface ListOptions {
  readonly partner?: string
  readonly limit: number
}

/** Signups that are read at a time. */
const step = 1_000

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
    .action((options: ListOptions, command: Command) => list(invocationOf(command), options))

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
    .action(({ partner }: { partner?: string }, command: Command) =>
      exportAll(invocationOf(command), partner)
    )
}

function list(invocation: Invocation, { partner, limit }: ListOptions): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    if (partner !== undefined) await findPartner(store, partner)
    const found = await store.listSignups(partner, undefined, limit + 1)
    const shown = found.slice(0, limit)
    await printResult(
      invocation,
      shown.map(signupWire),
      shown.length === 0 ? '' : table(
        ['id', 'received', 'partner', 'kind', 'name', 'email', 'company', 'country', 'plan'],
        shown.map((signup) => [
          signup.id,
          readableTime(signup.createdAt),
          signup.partner,
          signup.environment,
          signup.name,
          signup.email,
          signup.company ?? '',
          signup.country ?? '',
          signup.plan ?? '',
        ]),
      ),
    )
    if (shown.length === 0) printNote('There are no signups yet.')
    if (found.length > limit) {
      printNote('There are earlier ones: --limit shows more, signups export all of them.')
    }
  })
}

function exportAll(invocation: Invocation, partner: string | undefined): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    if (partner !== undefined) await findPartner(store, partner)
    const [before, between, after] = invocation.json ? ['{"data":[', ',', ']}\n'] : ['', '\n', '\n']
    let count = 0
    if (invocation.json) await write(before)
    for await (const batch of batches(store, partner)) {
      const lines = batch.map((signup) => printableJson(JSON.stringify(signupWire(signup))))
      await write((count === 0 ? '' : between) + lines.join(between))
      count += batch.length
    }
    if (count > 0 || invocation.json) await write(after)
    else printNote('There are no signups yet.')
  })
}

async function* batches(store: Store, partner: string | undefined): AsyncGenerator<readonly Signup[]> {
  let last: Signup | undefined
  for (;;) {
    const batch = await store.listSignups(partner, last, step)
    if (batch.length > 0) yield batch
    if (batch.length < step) return
    last = batch.at(-1)
  }
}

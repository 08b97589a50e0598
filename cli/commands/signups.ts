import { findPartner } from '../../core/admin/apply.ts'
import { formatValue } from '../../core/http/redact.ts'
import type { Signup } from '../../core/ports/signups.ts'
import { readPages, type Store } from '../../core/ports/store.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { CliError } from '../errors.ts'
import { signupJson } from '../../core/admin/record-json.ts'
import { type PageOptions, withPages } from '../options.ts'
import { formatTime, printableJson } from '../output/text.ts'

interface Options extends PageOptions<string> {
  readonly partner?: string
}

export function define(signups: CliCommand): void {
  withPages(signups.subcommand('list', 'List signups, newest first'), 'signup')
    .option('--partner <slug>', 'Only signups of this partner')
    .read(list)
    .examples('partner-api signups list', 'partner-api signups list --partner acme --limit 10 --json')

  signups.subcommand('export', 'Print signups with all their fields as JSON Lines, newest first')
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

const list: StoreAction<[Options], void> = async (store, { output }, { partner, after, limit }) => {
  if (partner !== undefined) await findPartner(store, partner)
  const start = after === undefined ? undefined : await findSignup(store, after)
  await output.page<Signup>({
    read: (last, rows) => store.listSignups(partner, last ?? start, rows),
    toJson: signupJson,
    headings: ['id', 'received', 'partner', 'kind', 'name', 'email', 'company', 'country', 'plan'],
    toCells: (
      { id, createdAt, partner, environment, name, email, company = '', country = '', plan = '' },
    ) => [
      ...[id, formatTime(createdAt), partner, environment, name, email, company, country, plan],
    ],
    rows: 'signups',
    after: ({ id }) => id,
    none: after === undefined ? 'There are no signups yet.' : 'There are no older signups.',
  }, limit)
}

/** @throws {CliError} `signup_not_found` */
async function findSignup(store: Store, id: string): Promise<Signup> {
  const signup = await store.findSignup(id)
  if (signup !== undefined) return signup
  throw new CliError(1, 'signup_not_found', `There is no signup ${formatValue(id)}.`)
}

const exportAll: StoreAction<[Options], void> = async (store, { output }, { partner }) => {
  const toText = (signups: readonly Signup[]) =>
    signups.map((signup) => `${printableJson(JSON.stringify(signupJson(signup)))}\n`).join('')
  if (partner !== undefined) await findPartner(store, partner)
  const signups = readPages<Signup>((last, rows) => store.listSignups(partner, last, rows))
  const { last } = await output.list(signups, signupJson, toText)
  if (last === undefined && !output.json) output.note('There are no signups yet.')
}

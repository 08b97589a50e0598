import { findPartner } from '../../core/admin/apply.ts'
import { signupJson } from '../../core/admin/record-json.ts'
import { formatValue } from '../../core/http/redact.ts'
import { EMAIL_PATTERN } from '../../core/content/scalars.ts'
import { parseInstant, startOfDay } from '../../core/lib/time.ts'
import type { Signup } from '../../core/ports/signups.ts'
import { readRows, type Store } from '../../core/ports/store.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { readLines } from '../files.ts'
import { optionParser, type PageOptions, withPages } from '../options.ts'
import { formatCount, formatDetails, formatTime, joinList, pluralize, printableJson } from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { timeOf } from '../store/open.ts'

interface Options extends PageOptions<string> {
  readonly partner?: string
}

interface DeleteOptions {
  readonly partner?: string
  readonly email?: string
  readonly before?: number
  readonly dryRun?: true
  readonly yes?: true
}

/** Signups of a transaction: other writers of a SQLite file wait for it. */
const batchSize = 500

export function define(signups: CliCommand): void {
  withPages(signups.subcommand('list', 'List signups, newest first'), 'signup')
    .option('--partner <slug>', 'Only signups of this partner')
    .read(list)
    .examples(
      'partner-api signups list',
      'partner-api signups list --partner acme --limit 10 --json',
      `partner-api signups export | jq 'select(.name | test("lovelace"; "i"))'`,
    )

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

  signups.subcommand('delete [signup...]', 'Delete signups, their webhook deliveries and idempotency keys')
    .option(
      '--email <address>',
      'Signups with this e-mail address, in either case; - reads it from standard input',
    )
    .option('--before <date>', 'Signups before this date, UTC, or instant', beforeOption)
    .option('--partner <slug>', 'Only signups of this partner')
    .option('--dry-run', 'Delete nothing; count the signups of each partner')
    .option('-y, --yes', 'Do not ask for confirmation')
    .read(remove)
    .details(`
Nothing can restore them, except a backup: after store restore, delete them again. The audit log keeps their number, and
reports their counts, without personal data. A request that repeats a deleted one with the same
Idempotency-Key makes a new signup.

SQLite: then rewrites the file (VACUUM), so that no deleted text is left in it or its log. Until that is done, other
processes cannot write. Run the command again if it fails or is killed: it rewrites the file even if nothing is left to
delete. PostgreSQL: VACUUM, which autovacuum runs, frees deleted rows to be overwritten, and does not erase them; archived
logs and backups keep them for as long as you do.

Signups that a program keeps in a destination of its own are in its tables. Delete them there: the store has only their
id, time, partner, key, country and plan.`)
    .examples(
      'partner-api signups delete sgn_3Q9pVx7TzKc2LmR8wYbD --yes',
      'partner-api signups delete --email ada@example.org --dry-run',
      'partner-api signups delete --before 2026-01-01 --partner acme',
    )
}

const beforeOption = optionParser(
  'It must be a date such as 2026-01-31, or an instant such as 2026-01-31T12:00:00Z.',
  (text) => parseInstant(text) ?? (startOfDay(text) || undefined),
)

const list: StoreAction<[Options], void> = async (store, { output }, { partner, after, limit }) => {
  if (partner !== undefined) await findPartner(store, partner)
  const start = after === undefined ? undefined : await findSignup(store, after)
  await output.page<Signup>({
    read: (last = start, rows) => store.listSignups(partner, last, rows),
    toJson: signupJson,
    headings: ['id', 'received', 'partner', 'kind', 'name', 'email', 'company', 'country', 'plan'],
    toCells({ id, createdAt, partner, environment, name, email, company = '', country = '', plan = '' }) {
      return [id, formatTime(createdAt), partner, environment, name, email, company, country, plan]
    },
    rows: 'signups',
    after: ({ id }) => id,
    none: after === undefined ? 'There are no signups yet.' : 'There are no such signups.',
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
  const signups = readRows<Signup>((last, rows) => store.listSignups(partner, last, rows))
  const { last } = await output.list(signups, signupJson, toText)
  if (last === undefined && !output.json) output.note('There are no signups yet.')
}

const remove: StoreAction<[readonly string[], DeleteOptions]> = async (store, invocation, given, options) => {
  const { operator: { actor }, io } = invocation
  const { partner, email, before, dryRun = false, yes } = options
  const selections = [given.length > 0, email !== undefined, before !== undefined]
  if (selections.filter(Boolean).length !== 1) {
    throw usageError('Pass the ids of signups, or --email, or --before.')
  }
  if (partner !== undefined) await findPartner(store, partner)
  const address = email === '-' ? (await readLines('-', io.stdin).next()).value?.trim() ?? '' : email
  if (address !== undefined && !EMAIL_PATTERN.test(address)) {
    throw usageError('--email needs an e-mail address.')
  }
  const ids: string[] = []
  const counts = new Map<string, number>()
  let elsewhere = 0
  for await (const signup of candidates(store, given, options)) {
    if (signup.email === '') elsewhere++
    if (address !== undefined && signup.email.toLowerCase() !== address.toLowerCase()) continue
    ids.push(signup.id)
    counts.set(signup.partner, (counts.get(signup.partner) ?? 0) + 1)
  }
  const question = `This deletes ${pluralize(ids.length, 'signup')}.`
  if (!yes && !dryRun && ids.length > 0) await confirm(io, question, 'delete')
  let deleted = 0
  for (let start = 0; start < ids.length && !dryRun; start += batchSize) {
    const context = { actor, at: timeOf(store) }
    deleted += await store.deleteSignups(ids.slice(start, start + batchSize), context)
  }
  // Also without signups: an earlier attempt may have been killed before it.
  if (!dryRun) await store.eraseRemains(true)
  const done = dryRun ? 'Nothing was deleted.' : `Deleted ${pluralize(deleted, 'signup')}.`
  const partners = [...counts].sort().map(([partner, signups]) => ({ partner, signups }))
  const data = { signups: dryRun ? ids.length : deleted, partners, dry_run: dryRun }
  const unknown = new Set(given).difference(new Set(ids))
  if (unknown.size > 0) {
    throw new CliError(1, 'signup_not_found', `${describeUnknown(unknown)} ${done}`, { data })
  }
  const rows = partners.map(({ partner, signups }) => [partner, pluralize(signups, 'signup')] as const)
  const text = rows.length > 0 ? formatDetails(rows) : 'There are no such signups.\n'
  const kept = `A program keeps ${pluralize(elsewhere, 'signup')} elsewhere`
  const warning = `warning: ${kept}, with the e-mail address: see --help.`
  const notes = () => elsewhere > 0 ? [done, warning] : [done]
  return { data, text, notes, lost: { detail: done } }
}

const maxNamed = 3

function describeUnknown(ids: ReadonlySet<string>): string {
  const names = [...ids].slice(0, maxNamed).map(formatValue)
  if (ids.size > maxNamed) names.push(`${formatCount(ids.size - maxNamed)} more`)
  return `There ${ids.size === 1 ? 'is no signup' : 'are no signups'} ${joinList(names)}.`
}

async function* candidates(store: Store, given: readonly string[], { partner, before }: DeleteOptions) {
  for (const id of new Set(given)) {
    const signup = await store.findSignup(id)
    if (signup !== undefined && signup.partner === (partner ?? signup.partner)) yield signup
  }
  if (given.length > 0) return
  const start = before === undefined ? undefined : { createdAt: before - 1, id: '' }
  yield* readRows<Signup>((last, rows) => store.listSignups(partner, last ?? start, rows))
}

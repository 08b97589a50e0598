import type { Command } from 'commander'
import { findPartner } from '../../core/admin/find.ts'
import { verifyAudit } from '../../core/audit/chain.ts'
import type { AuditEntry } from '../../core/audit/entry.ts'
import type { Store } from '../../core/ports.ts'
import { readPages } from '../../core/read-pages.ts'
import { Failure } from '../failure.ts'
import { integerBetween } from '../input/integer.ts'
import { type Invocation, invocationOf } from '../invocation.ts'
import { readableTime } from '../output/readable.ts'
import { printList, printNote, printResult } from '../output/print.ts'
import { createTable, details } from '../output/table.ts'
import { listed } from '../output/text.ts'
import { auditWire, stateWire } from '../output/wire.ts'
import { withStore } from '../store.ts'

interface ListOptions {
  readonly partner?: string
  readonly after?: number
  readonly limit: number
}

/** `audit list` and `verify`. */
export function define(audit: Command): void {
  audit.command('list')
    .description('List what operators changed: who, when, what, before and after')
    .option('--partner <slug>', 'Only what is about this partner, its modules and keys')
    .option(
      '--after <sequence>',
      'The first entries after this one (default: the last there are)',
      integerBetween(0, 9_999_999_999),
    )
    .option('--limit <n>', 'How many entries, 1 to 100000', integerBetween(1, 100_000), 100)
    .addHelpText(
      'after',
      `
Oldest first. --json has the whole state before and after; here stands what differs.

Examples:
  $ partner-api audit list --partner acme
  $ partner-api audit list --after 0 --limit 1000 --json | jq '.data[] | select(.actor == "root")'`,
    )
    .action((options: ListOptions, command: Command) => list(invocationOf(command), options))

  audit.command('verify')
    .description(
      'Check every entry against the seals: exits 1 and names the first that is not as it was written',
    )
    .addHelpText(
      'after',
      `
An entry that was changed, moved, added, removed or cut off at the end is found. Whoever can write the whole store can
write the whole trail anew: a copy of the last seal, kept elsewhere, shows that too.

Example:
  $ partner-api audit verify`,
    )
    .action((_options: unknown, command: Command) => verify(invocationOf(command)))
}

function list(invocation: Invocation, { partner, after, limit }: ListOptions): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    if (partner !== undefined) await findPartner(store, partner)
    const start = after ?? await store.auditTail(limit, partner)
    const addRows = createTable(['no.', 'when', 'who', 'what', 'partner', 'key', 'about', 'change'])
    const entries = readPages<AuditEntry>(
      (last, rows) => store.listAudit(last?.sequence ?? start, rows, partner),
      limit + 1,
    )
    const { last, hasMore } = await printList(
      invocation,
      entries,
      {
        wire: auditWire,
        text: (entries) =>
          addRows(entries.map((entry) => [
            String(entry.sequence),
            whenText(entry),
            entry.actor,
            entry.type,
            entry.partner ?? '',
            entry.keyId ?? '',
            entry.subject ?? '',
            changeText(entry),
          ])),
      },
      limit,
    )
    if (last === undefined) printNote('There are no such entries.')
    else if (after === undefined && start !== -Infinity) {
      printNote('There are earlier ones: --limit shows more, --after 0 the first.')
    } else if (hasMore) printNote(`There are more: --after ${last.sequence}`)
  })
}

/** Somebody may have written there what is no instant. */
function whenText({ at }: AuditEntry): string {
  return Number.isNaN(new Date(at).getTime()) ? 'unreadable' : readableTime(at)
}

/** What differs between before and after; of what there was not before, its name. */
function changeText({ before, after }: AuditEntry): string {
  const [old, current] = [stateWire(before), stateWire(after)]
  if (typeof old === 'string' || typeof current === 'string') return 'unreadable'
  if (old !== null && current !== null) {
    return [...new Set([...Object.keys(old), ...Object.keys(current)])]
      .map((name) => [name, valueText(old[name]), valueText(current[name])] as const)
      .filter(([, was, is]) => was !== is)
      .map(([name, was, is]) => `${name}: ${was} → ${is}`)
      .join(', ')
  }
  const { name, slugs, created, replaced } = current ?? old ?? {}
  if (created !== undefined) return `${created} created, ${replaced} replaced`
  if (Array.isArray(slugs)) return valueText(slugs)
  return name === undefined ? '' : `name: ${valueText(name)}`
}

function valueText(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  if (Array.isArray(value)) return value.map(valueText).join(' ') || 'none'
  if (typeof value !== 'object') return String(value)
  const { policy, quota, window_seconds: seconds } = value as Record<string, unknown>
  return policy === undefined ? JSON.stringify(value) : `${policy}=${quota}/${seconds}`
}

function verify(invocation: Invocation): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const broken = await verifyAudit(store, store.sha256)
    if (broken !== undefined) throw await brokenTrail(store, broken)
    const intruders = await store.auditIntruders?.() ?? []
    if (intruders.length > 0) throw watchedTrail(intruders)
    const { sequence, seal } = await store.auditHead()
    await printResult(
      invocation,
      { valid: true, entries: sequence, seal: seal || null },
      `The audit trail is whole.\n\n${
        details([['entries', String(sequence)], ['last seal', seal || 'none']])
      }`,
    )
  })
}

async function brokenTrail(store: Store, sequence: number): Promise<Failure> {
  const head = await store.auditHead()
  const [found] = await store.listAudit(sequence === 1 ? -Infinity : sequence - 1, 1)
  const says = found && `it says: ${whenText(found)}, ${found.actor}, ${found.type}`
  const complaint = found?.sequence === sequence
    ? `is not as it was written (${says})`
    : found !== undefined && (found.sequence < sequence || head.sequence < sequence)
    ? `has a row in its place that no change has written: ${found.id}, ${
      Number.isFinite(found.sequence) ? `number ${found.sequence}` : 'its number out of all bounds'
    } (${says})`
    : 'is missing'
  return new Failure(
    1,
    'audit_broken',
    `Entry ${sequence} of the audit trail ${complaint}. All before it is whole; what comes after it proves nothing.`,
    { members: { sequence } },
  )
}

function watchedTrail(intruders: readonly string[]): Failure {
  return new Failure(
    1,
    'audit_broken',
    `The entries of the audit trail are whole, but the store holds what this program did not make and what acts when ` +
      `entries are written: ${listed(intruders)}. Some may never have arrived.`,
    { members: { intruders } },
  )
}

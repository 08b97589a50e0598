import { type Command, InvalidArgumentError, Option } from 'commander'
import { findPartner } from '../../core/admin/find.ts'
import type { AuditEntry, AuditHead } from '../../core/audit/entry.ts'
import { type AuditDifference, auditStore } from '../../core/audit/replay.ts'
import type { Store } from '../../core/ports.ts'
import { readPages } from '../../core/read-pages.ts'
import { Failure } from '../failure.ts'
import { integerBetween } from '../input/arguments.ts'
import { action, type Invocation } from '../invocation.ts'
import { printList, printNote, printResult } from '../output/print.ts'
import { createTable, details } from '../output/table.ts'
import { listed, readableTime } from '../output/text.ts'
import { auditWire, stateWire } from '../output/wire.ts'
import { withStore } from '../store.ts'

interface ListOptions {
  readonly partner?: string
  readonly after?: number
  readonly limit: number
}

/** `audit list`, `verify` and `seal`. */
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
    .action(action(list))

  audit.command('verify')
    .description(
      'Check the audit log, and every partner and key against it: exits 1 and names what does not fit',
    )
    .addOption(
      new Option('--seal <sequence:hash>', 'What audit seal printed before: the log must still contain it')
        .argParser(readSeal),
    )
    .addHelpText(
      'after',
      `
Finds entries that were changed, moved, added or removed; partners and keys whose rows are not what the entries say;
and triggers, rules and views that were added to the store.

The store alone cannot show that the end of the log and its head were removed together, or that the whole log was
written anew. To find that as well, keep the output of audit seal outside of the store.

Examples:
  $ partner-api audit verify
  $ partner-api audit verify --seal "$(cat last-seal)"`,
    )
    .action(action(verify))

  audit.command('seal')
    .description('Print the number and hash of the last entry, to be kept outside of the store')
    .addHelpText(
      'after',
      `
Example:
  $ partner-api audit seal > last-seal`,
    )
    .action(action(seal))
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
function changeText({ before, after }: Pick<AuditEntry, 'before' | 'after'>): string {
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

function verify(invocation: Invocation, { seal }: { readonly seal?: AuditHead }): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const { broken, isSealKept, differences, head } = await auditStore(store, seal).catch((error) => {
      // A table that is gone is tampering: the store itself can be reached. 42P01 is Postgres's undefined_table.
      if (error.code !== '42P01' && !/^no such table/.test(error.message)) throw error
      throw new Failure(1, 'audit_broken', `The store cannot be verified: ${error.message}.`)
    })
    if (broken !== undefined) throw await brokenTrail(store, broken)
    if (!isSealKept) throw lostSeal(seal!, head)
    const intruders = await store.auditIntruders?.() ?? []
    if (differences.length > 0) throw alteredRows(differences, intruders)
    if (intruders.length > 0) throw watchedTrail(intruders)
    const { sequence, seal: hash } = head
    await printResult(
      invocation,
      { valid: true, entries: sequence, seal: hash || null },
      `The audit log is intact, and every partner and key is as it says.\n\n${
        details([['entries', String(sequence)], ['last seal', hash || 'none']])
      }`,
    )
    if (seal?.sequence === 0) {
      printNote('The seal 0: is that of an empty log: no entry was checked against it.')
    }
  })
}

function seal(invocation: Invocation): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const { sequence, seal: hash } = await store.auditHead()
    await printResult(invocation, { sequence, hash }, `${sequence}:${hash}\n`)
  })
}

/** Reads `SEQUENCE:HASH`, as `audit seal` prints it. */
function readSeal(text: string): AuditHead {
  const [, sequence, hash] = /^(0|[1-9]\d{0,14}):([0-9a-f]{64}|)$/.exec(text) ?? []
  if (sequence !== undefined && (sequence === '0') === (hash === '')) {
    return { sequence: Number(sequence), seal: hash! }
  }
  throw new InvalidArgumentError('It has to be SEQUENCE:HASH, as audit seal prints it.')
}

function lostSeal(seal: AuditHead, head: AuditHead): Failure {
  return new Failure(
    1,
    'audit_broken',
    seal.sequence > head.sequence
      ? `The audit log has lost its end: it stops at entry ${head.sequence}, and entry ${seal.sequence} was sealed.`
      : `Entry ${seal.sequence} of the audit log is not the one that was sealed: the log was written anew.`,
    { members: { sequence: Math.min(seal.sequence, head.sequence + 1) } },
  )
}

function alteredRows(differences: readonly AuditDifference[], intruders: readonly string[]): Failure {
  return new Failure(
    1,
    'audit_mismatch',
    'The entries of the audit log are intact, but what is stored is not what they say:',
    {
      lines: [
        ...differences.map(differenceText),
        ...intruders.map((name) => `trigger, rule or view ${name}`),
      ],
      members: {
        differences: differences.map(({ kind, id, expected, stored, brokenAt = null }) => ({
          [kind === 'key' ? 'key_id' : 'partner']: id,
          expected: stateWire(expected),
          stored: stateWire(stored),
          digest_replaced: isDigestReplaced(expected, stored),
          broken_at: brokenAt,
        })),
        intruders,
      },
    },
  )
}

function differenceText({ kind, id, expected, stored, brokenAt }: AuditDifference): string {
  if (stored === undefined) return `${kind} ${id} has entries, but is not stored`
  if (expected === undefined) return `${kind} ${id} is stored, but no entry says so`
  const changed = changeText({ before: expected, after: stored })
  const digest = isDigestReplaced(expected, stored) ? ['digest replaced'] : []
  if (expected !== stored) return `${kind} ${id}: ${[changed, ...digest].filter(Boolean).join(', ')}`
  return `${kind} ${id} was changed without an entry before entry ${brokenAt}`
}

/** Digests are not shown. */
function isDigestReplaced(expected: string | undefined, stored: string | undefined): boolean {
  if (expected === undefined || stored === undefined) return false
  return JSON.parse(expected).digestHash !== JSON.parse(stored).digestHash
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
    `Entry ${sequence} of the audit log ${complaint}. All before it is intact; what comes after it proves nothing.`,
    { members: { sequence } },
  )
}

function watchedTrail(intruders: readonly string[]): Failure {
  return new Failure(
    1,
    'audit_broken',
    `The entries of the audit log are intact, but the store holds what this program did not make and what acts when ` +
      `entries are written: ${listed(intruders)}. Some may never have arrived.`,
    { members: { intruders } },
  )
}

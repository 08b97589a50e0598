import { findPartner } from '../../core/admin/apply.ts'
import { type AuditDifference, verifyAuditLog } from '../../core/audit/verify.ts'
import type { AuditEntry, AuditHead } from '../../core/ports/audit.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { CliError } from '../errors.ts'
import { integerBetween, optionParser, type PageOptions, withPages } from '../options.ts'
import { auditEntryJson, auditStateJson } from '../../core/admin/record-json.ts'
import type { CommandResult } from '../output/print.ts'
import { formatDetails, formatTime, joinList } from '../output/text.ts'

interface ListOptions extends PageOptions<number> {
  readonly partner?: string
}

export function define(audit: CliCommand): void {
  const listing = audit.subcommand('list', 'List administrative changes: who, when, what, before and after')
  withPages(listing, 'sequence', integerBetween(0, 9_999_999_999))
    .option('--partner <slug>', 'Only entries about this partner, its modules and keys')
    .read(list)
    .details(`
Oldest first; with --limit and without --after, the last entries. The table shows what differs; --json has the complete
state before and after.`)
    .examples(
      'partner-api audit list --partner acme',
      `partner-api audit list --after 0 --limit 1000 --json | jq '.data[] | select(.actor == "root")'`,
    )

  audit.subcommand(
    'verify',
    'Verify the audit log, and every row that it covers against it; exits 1 and reports what is wrong',
  )
    .option(
      '--seal <sequence:hash>',
      'Earlier output of audit seal, which the log must still contain',
      optionParser('It must be SEQUENCE:HASH, the output of audit seal.', parseSeal),
    )
    .read((store, { output }, { seal }: { readonly seal?: AuditHead }) =>
      output.progress((report) => {
        report('Verifying the audit log …')
        return verifyAudit(store, seal)
      })
    )
    .details(`
Detects entries that were changed, moved, added or removed; rows of partners, keys, claims, modules and webhooks that
differ from them; and triggers, rules and views that were added. Not covered, since they have no entries: the key prefix,
the secrets of cursors and webhooks, contacts and notes of partners, the rows of content, signups and counts.

The store alone cannot reveal that the end of the log was removed together with its head, or that the whole log was
rewritten. To detect that too, keep the output of audit seal outside of the store.`)
    .examples('partner-api audit verify', 'partner-api audit verify --seal "$(cat last-seal)"')

  audit.subcommand('seal', 'Print the number and hash of the last entry, to keep outside of the store')
    .read(async (store) => {
      const { sequence, hash } = await store.auditHead()
      return { data: { sequence, hash }, text: `${sequence}:${hash}\n` }
    })
    .examples('partner-api audit seal > last-seal')
}

const list: StoreAction<[ListOptions], void> = async (store, { output }, { partner, after, limit }) => {
  if (partner !== undefined) await findPartner(store, partner)
  const rows = limit ?? output.pageRows
  const start = after ?? (rows === Infinity ? -Infinity : await store.auditTail(rows, partner))
  await output.page<AuditEntry>({
    read: (last, rows) => store.listAudit(last?.sequence ?? start, rows, partner),
    toJson: auditEntryJson,
    headings: ['no.', 'when', 'who', 'what', 'partner', 'key', 'about', 'change'],
    toCells(entry) {
      const { sequence, actor, type, partner = '', keyId = '', subject = '' } = entry
      return [String(sequence), entryTime(entry), actor, type, partner, keyId, subject, describeChange(entry)]
    },
    rows: 'entries',
    after: ({ sequence }) => String(sequence),
    none: 'There are no such entries.',
  }, limit)
  if (after === undefined && start !== -Infinity) {
    output.note('There are older entries: pass --limit for more, or --after 0 to begin with the first.')
  }
}

/** The time of an entry, which may have been tampered with. */
function entryTime({ at }: AuditEntry): string {
  return Number.isNaN(new Date(at).getTime()) ? 'invalid' : formatTime(at)
}

/** The state of a record before and after a change, as the audit log stores it. */
interface States {
  readonly before?: string | undefined
  readonly after?: string | undefined
}

/** The difference between before and after; for something new or removed, its name. */
function describeChange({ before, after }: States): string {
  const old = auditStateJson(before)
  const current = auditStateJson(after)
  if (typeof old === 'string' || typeof current === 'string') return 'invalid'
  if (old !== null && current !== null) {
    return [...new Set([...Object.keys(old), ...Object.keys(current)])]
      .map((name) => [name, formatMember(old[name]), formatMember(current[name])] as const)
      .filter(([, was, is]) => was !== is)
      .map(([name, was, is]) => `${name}: ${was} → ${is}`)
      .join(', ')
  }
  const { name, slugs, created, replaced, signups } = current ?? old ?? {}
  if (signups !== undefined) return `${signups} deleted`
  if (created !== undefined) return `${created} created, ${replaced} replaced`
  if (Array.isArray(slugs)) return formatMember(slugs)
  return name === undefined ? '' : `name: ${formatMember(name)}`
}

function formatMember(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  if (Array.isArray(value)) return value.map(formatMember).join(' ') || 'none'
  if (typeof value !== 'object') return String(value)
  const { policy, quota, window_seconds: seconds } = value as Record<string, unknown>
  return policy === undefined ? JSON.stringify(value) : `${policy}=${quota}/${seconds}`
}

/** @throws {CliError} `audit_broken` or `audit_mismatch` */
export async function verifyAudit(store: Store, seal?: AuditHead): Promise<CommandResult> {
  const { brokenAt, sealMatches, differences, head } = await verifyAuditLog(store, seal)
    .catch((error) => {
      throw isTampering(error) ? brokenError(`The store cannot be verified: ${error.message}.`) : error
    })
  if (brokenAt !== undefined) throw await brokenEntryError(store, brokenAt)
  if (!sealMatches) throw sealMismatchError(seal!, head)
  const intruders = await store.auditIntruders()
  if (differences.length > 0) throw storedRowsError(differences, intruders)
  if (intruders.length > 0) {
    throw brokenError(
      'The audit log is intact, but the store has triggers, rules or views that this program did not create: ' +
        `${joinList(intruders)}. They may have suppressed or changed entries.`,
      { intruders },
    )
  }
  const { sequence, hash } = head
  const details = formatDetails([['entries', String(sequence)], ['last seal', hash || 'none']])
  const note = 'The seal 0: is that of an empty log, so it proves nothing about any entry.'
  return {
    data: { valid: true, entries: sequence, seal: hash || null },
    text: `The audit log is intact, and partners, keys, claims, modules and webhooks match it.\n\n${details}`,
    notes: () => seal?.sequence === 0 ? [note] : [],
  }
}

/** Whether tables or rows are not as the program writes them, which is not an outage. */
function isTampering(error: unknown): boolean {
  // An integer beyond ±2^53, a text that is not JSON, a JSON value of another type.
  if (error instanceof RangeError || error instanceof SyntaxError || error instanceof TypeError) return true
  const { code, message, cause } = error as Error & { readonly code?: string }
  if (cause instanceof RangeError) return true
  // Postgres's undefined_table and undefined_column.
  return code === '42P01' || code === '42703' || /^no such (?:table|column)/.test(message)
}

function parseSeal(text: string): AuditHead | undefined {
  const [, sequence, hash] = /^(0|[1-9]\d{0,14}):([0-9a-f]{64}|)$/.exec(text) ?? []
  if (sequence === undefined || (sequence === '0') !== (hash === '')) return undefined
  return { sequence: Number(sequence), hash: hash! }
}

function brokenError(detail: string, members: Readonly<Record<string, unknown>> = {}): CliError {
  return new CliError(1, 'audit_broken', detail, { members })
}

function sealMismatchError(seal: AuditHead, head: AuditHead): CliError {
  return brokenError(
    seal.sequence > head.sequence
      ? `The end of the audit log is missing: it stops at entry ${head.sequence}, but entry ${seal.sequence} was sealed.`
      : `Entry ${seal.sequence} of the audit log is not the one that was sealed: the log was rewritten.`,
    { sequence: Math.min(seal.sequence, head.sequence + 1) },
  )
}

function storedRowsError(differences: readonly AuditDifference[], intruders: readonly string[]): CliError {
  return new CliError(1, 'audit_mismatch', 'The audit log is intact, but the stored data differs from it:', {
    lines: [
      ...differences.map(describeDifference),
      ...intruders.map((name) => `trigger, rule or view ${name}`),
    ],
    members: {
      differences: differences.map(({ kind, id, expected, stored, brokenAt = null }) => ({
        [kind === 'key' ? 'key_id' : kind]: id,
        expected: auditStateJson(expected),
        stored: auditStateJson(stored),
        digest_replaced: isDigestReplaced(expected, stored),
        broken_at: brokenAt,
      })),
      intruders,
    },
  })
}

function describeDifference({ kind, id, expected, stored, brokenAt }: AuditDifference): string {
  if (stored === undefined) return `${kind} ${id} has entries, but is not stored`
  if (expected === undefined) return `${kind} ${id} is stored, but has no entry`
  const changed = describeChange({ before: expected, after: stored })
  const digest = isDigestReplaced(expected, stored) ? ['digest replaced'] : []
  if (expected !== stored) return `${kind} ${id}: ${[changed, ...digest].filter(Boolean).join(', ')}`
  return `${kind} ${id} was changed without an entry before entry ${brokenAt}`
}

/** A separate check, since the output never contains digests. */
function isDigestReplaced(expected: string | undefined, stored: string | undefined): boolean {
  if (expected === undefined || stored === undefined) return false
  return JSON.parse(expected).digestHash !== JSON.parse(stored).digestHash
}

async function brokenEntryError(store: Store, sequence: number): Promise<CliError> {
  const head = await store.auditHead()
  const [found] = await store.listAudit(sequence === 1 ? -Infinity : sequence - 1, 1)
  const description = found === undefined ? 'is missing' : describeBroken(found, sequence, head)
  return brokenError(
    `Entry ${sequence} of the audit log ${description}. All entries before it are intact; entries after it cannot be verified.`,
    { sequence },
  )
}

/** @param found The row with the number of the broken entry, or the next one. */
function describeBroken(found: AuditEntry, sequence: number, head: AuditHead): string {
  const text = `it reads: ${entryTime(found)}, ${found.actor}, ${found.type}`
  if (found.sequence === sequence) return `was changed after it was written (${text})`
  const isReplaced = found.sequence < sequence || head.sequence < sequence
  if (!isReplaced) return 'is missing'
  const number = Number.isFinite(found.sequence) ? `number ${found.sequence}` : 'with an invalid number'
  return `was replaced by a row that this program did not write: ${found.id}, ${number} (${text})`
}

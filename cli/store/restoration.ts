/** What a restore did, or what a dry run of one would do, in words and as JSON. */
import { readEntriesAfter, type ReplacedStore, type Restoration } from '../../adapters/stores/sql/restore.ts'
import { auditEntryJson } from '../../core/admin/record-json.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import type { Output } from '../output/print.ts'
import { formatTime, joinList, pluralize, printable, shellQuote } from '../output/text.ts'

/** What is printed of a restore beside its changes. */
export interface Printed {
  /** Further members for `--json`. */
  readonly data: object
  /** The text for people, on standard output. */
  readonly text: string
  /** The first sentence for people, if there is one. */
  readonly note?: string
  readonly dryRun: boolean
  /** Where the replaced store is now; `undefined` if there was none. */
  readonly replacedUrl: string | undefined
}

/** Prints the result of a restore, and the changes that the replaced store has had since the backup. */
export async function printRestoration(
  output: Output,
  found: Restoration,
  replaced: ReplacedStore | undefined,
  printed: Printed,
): Promise<void> {
  const { since } = found
  const entries = since && replaced ? readEntriesAfter(since.after, replaced) : undefined
  try {
    if (output.json) {
      const record = { ...printed.data, ...restorationJson(found) }
      await output.recordWithList(record, 'changes', entries ?? [], auditEntryJson)
    } else {
      await output.write(printed.text)
      if (entries !== undefined && since!.entries > 0) await printEntries(output, entries)
    }
  } finally {
    // What a restore did has to be known, also when standard output cannot be written.
    if (printed.note !== undefined) output.note(printed.note)
    for (const sentence of describeRestoration(found, printed)) output.note(printable(sentence))
  }
}

function restorationJson({ mode, narrowed, disabledWebhooks, revokedClaims, since }: Restoration) {
  return {
    mode,
    narrowed,
    disabled_webhooks: disabledWebhooks,
    revoked_claims: revokedClaims,
    since: since === undefined ? null : { after: since.after, entries: since.entries },
  }
}

async function printEntries(output: Output, entries: AsyncIterable<AuditEntry>): Promise<void> {
  const headings = ['no.', 'when', 'who', 'what', 'partner', 'key', 'about']
  await output.table(entries, auditEntryJson, headings, entryCells, output.pageRows)
}

function entryCells(entry: AuditEntry): string[] {
  const { sequence, at, actor, type, partner = '', keyId = '', subject = '' } = entry
  return [String(sequence), formatTime(at), actor, type, partner, keyId, subject]
}

/** A sentence about what a restore did, and the one about what it would do. */
type SentencePair = readonly [holds: boolean, done: string, conditional: string]

function describeRestoration(
  { mode, narrowed, disabledWebhooks, revokedClaims, since }: Restoration,
  { dryRun, replacedUrl }: Printed,
): string[] {
  const { issuedKeys = 0, erasures = 0 } = since ?? {}
  const counts: string[] = []
  if (narrowed.keys > 0) counts.push(pluralize(narrowed.keys, 'key'))
  if (narrowed.partners > 0) counts.push(pluralize(narrowed.partners, 'partner'))
  const what = joinList(counts)
  const noReplaced = replacedUrl === undefined
    ? 'There is no replaced store'
    : `${replacedUrl} cannot be read`
  const unknown = `warning: ${noReplaced}: revocations since the backup are unknown, and what they ended`
  const webhooks = disabledWebhooks.join(' ')
  const links = pluralize(revokedClaims, 'open link')
  const lacking = `warning: The backup lacks ${pluralize(issuedKeys, 'key')} issued since,`
  const lackingKeys = `${lacking} successors of rotated keys included`
  const erased = 'warning: The backup may have signups that were deleted since:'
  const pairs: readonly SentencePair[] = [
    [
      mode === 'narrowed' && what !== '',
      `Narrowed ${what} to what the replaced store allows.`,
      `A restore would narrow ${what} to what the present store allows.`,
    ],
    [
      mode === 'as_backed_up',
      'warning: Keys and partners are as in the backup: what was revoked or restricted since is accepted again.',
      'warning: A restore would accept again what was revoked or restricted since the backup.',
    ],
    [mode === 'unknown', `${unknown} is accepted again.`, `${unknown} would be accepted again.`],
    [
      disabledWebhooks.length > 0,
      `warning: Webhooks start disabled, until you run webhooks enable: ${webhooks}`,
      `warning: Webhooks would start disabled, until you run webhooks enable: ${webhooks}`,
    ],
    [
      revokedClaims > 0,
      `warning: The restore revoked ${links}: make others.`,
      `warning: A restore would revoke ${links}.`,
    ],
    [issuedKeys > 0, `${lackingKeys}: issue others.`, `${lackingKeys}: they would no longer work.`],
    [
      erasures > 0,
      `${erased} delete them again with signups delete.`,
      `${erased} after a restore, delete them again with signups delete.`,
    ],
    ...since === undefined ? [] : sentencesOnLoss(since.after, since.entries, replacedUrl!),
  ]
  const held = pairs.filter(([holds]) => holds)
  return held.map(([, done, conditional]) => dryRun ? conditional : done)
}

/** What only the replaced store has. */
function sentencesOnLoss(after: number, entries: number, replacedUrl: string): SentencePair[] {
  const command = (words: string) => `partner-api --store ${shellQuote(replacedUrl)} ${words}`
  const changes = pluralize(entries, 'change')
  const list = command(`audit list --after ${after}`)
  const signups = command('signups export')
  return [
    [
      entries > 0,
      `The replaced store has ${changes} since the backup: ${list}`,
      `The present store has ${changes} since the backup, which a restore would not keep: ${list}`,
    ],
    [
      true,
      `Signups since the backup are in the replaced store only: ${signups}`,
      `Signups since the backup would be in the replaced store only: ${signups}`,
    ],
  ]
}

/** What a restore undoes: changes since the backup, of which restrictions are to be repeated. */
import { readPages } from '../core/lib/read-pages.ts'
import { rfc3339 } from '../core/lib/time.ts'
import type { AuditEntry, AuditLog } from '../core/ports/audit.ts'
import type { Output } from './output/print.ts'
import { pluralize, printable, shellQuote } from './output/text.ts'

/** The commands that repeat a restriction, by the type of its entry. */
const repeats: Readonly<Record<string, string>> = {
  'key.revoked': 'keys revoke',
  'key.disabled': 'keys disable',
  'key.rotated': 'keys rotate --overlap 0',
  'key.retired': 'keys rotation finish --force',
  'key.updated': 'keys update',
  'scope.removed': 'scopes remove',
  'module.deactivated': 'modules deactivate',
  'partner.suspended': 'partners suspend',
  'partner.removed': 'partners remove',
}

/** What undoes a restriction. */
const opposites: Readonly<Record<string, string>> = {
  'key.enabled': 'key.disabled',
  'scope.granted': 'scope.removed',
  'module.activated': 'module.deactivated',
  'partner.resumed': 'partner.suspended',
}

/** @returns The words that repeat a key's allow-list and expiry; `undefined` if it has none, or none that is new. */
function toUpdate({ before = '{}', after = '{}' }: AuditEntry, isKnown: boolean): string[] | undefined {
  const [was, { allow, expiresAt }] = [JSON.parse(before), JSON.parse(after)]
  if (!isKnown && expiresAt === was.expiresAt && String(allow) === String(was.allow)) return undefined
  if (expiresAt <= Date.now()) return ['keys disable']
  const words = allow.length > 0 ? ['keys update', '--allow', ...allow] : ['keys update']
  if (expiresAt !== undefined) words.push('--expires', rfc3339(expiresAt))
  return words.length > 1 ? words : undefined
}

type Undone = Awaited<ReturnType<typeof readUndone>>

/** @returns What a log has since a seal; `null` if the log does not contain it. */
export async function readUndone(log: AuditLog | undefined, seal: string) {
  const [start, hash] = [parseInt(seal), seal.split(':')[1]]
  const [sealed] = await log?.listAudit(start - 1, 1) ?? []
  if (log === undefined || start > 0 && sealed?.hash !== hash) return null
  const created = new Set<string>()
  const issued: string[] = []
  const restrictions = new Map<string, Record<'command' | 'type' | 'actor' | 'occurred_at', string>>()
  const rotated = new Set<string>()
  let entries = 0
  const read = (last: AuditEntry | undefined, rows: number) => log.listAudit(last?.sequence ?? start, rows)
  for await (const entry of readPages(read)) {
    entries++
    const { at, actor, type, subject } = entry
    const id = entry.keyId ?? entry.partner ?? ''
    if (type === 'key.issued') issued.push(id)
    if (type === 'key.issued' || type === 'partner.created') created.add(id)
    if (type === 'key.rotated') rotated.add(id)
    const restriction = opposites[type] ?? type
    if (!(restriction in repeats) || created.has(id)) continue
    const place = [restriction, id, subject].join(' ')
    const isLifted = restriction !== type ||
      type === 'key.rotated' && JSON.parse(entry.after!).state !== 'retired'
    // A restore also undoes a later rotation: it is repeated, and ends the key at once.
    const isRotated = type === 'key.retired' && rotated.has(id)
    const repeat = type === 'key.updated'
      ? toUpdate(entry, restrictions.has(place))
      : [repeats[isRotated ? 'key.rotated' : restriction]!]
    if (isLifted || repeat === undefined) restrictions.delete(place)
    else {
      const [command, ...options] = repeat
      const words = [id, ...subject === undefined ? [] : [subject], ...options].map(shellQuote)
      restrictions.set(place, {
        command: `partner-api ${command} ${words.join(' ')}`,
        type,
        actor,
        occurred_at: rfc3339(at),
      })
    }
  }
  return { after: start, entries, restrictions: [...restrictions.values()], issued_keys: issued }
}

export function noteUndone(output: Output, store: string, undone: Undone): void {
  if (undone === null) {
    return output.note(
      `warning: ${store} cannot be read, or does not continue the backup: what is undone is unknown.`,
    )
  }
  const { after, entries, restrictions, issued_keys: keys } = undone
  const list = `partner-api --store ${shellQuote(`sqlite:${store}`)} audit list --after ${after}`
  output.note(`${pluralize(entries, 'change')} since the backup, and all signups since: ${list}`)
  if (keys.length > 0) {
    output.note(`warning: Keys issued since the backup do not work: ${printable(keys.join(' '))}`)
  }
  if (restrictions.length > 0) output.note('warning: Undone, to be repeated before you serve the store:')
  for (const { command } of restrictions) output.note(printable(command))
}

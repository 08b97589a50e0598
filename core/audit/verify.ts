import { readPages } from '../lib/read-pages.ts'
import type { Key, Partner } from '../model.ts'
import { type AuditEntry, type AuditHead, EMPTY_AUDIT_HEAD } from '../ports/audit.ts'
import type { Store } from '../ports/store.ts'
import { keySnapshot, partnerSnapshot, verifyChain } from './chain.ts'

/** A partner or key whose row, or whose entries, were changed behind the store's back. */
export interface AuditDifference {
  readonly kind: 'partner' | 'key'
  /** The slug or the public id. */
  readonly id: string
  /** The state that the last entry left, see `AuditEntry`; `undefined` when no entry is about it. */
  readonly expected: string | undefined
  /** The state that is stored; `undefined` when there is no row. */
  readonly stored: string | undefined
  /** The first entry that does not begin with the state that the entry before it left, if there is one. */
  readonly brokenAt: number | undefined
}

/** What an audit found. Later members say something only where the earlier ones found nothing. */
export interface AuditReport {
  /** The first entry that is not as it was written. */
  readonly brokenAt: number | undefined
  /** Whether the entry of the external seal is there with its hash; true without such a seal. */
  readonly sealMatches: boolean
  /** At most 100. */
  readonly differences: readonly AuditDifference[]
  /** The last entry that was verified. */
  readonly head: AuditHead
}

type AuditedStore = Pick<
  Store,
  'auditHead' | 'listAudit' | 'listPartners' | 'findPartner' | 'listKeys' | 'findKey' | 'sha256'
>

const maxDifferences = 100

/** How often stored rows are read again because they were changed while they were compared. */
const maxAttempts = 5

/**
 * Verifies the chain, replays it, and compares every partner and key with what its entries say. Memory grows with their
 * number, by some 200 bytes each.
 *
 * @param seal A head that was kept outside of the store.
 */
export async function verifyAuditLog(
  store: AuditedStore,
  seal: AuditHead = EMPTY_AUDIT_HEAD,
): Promise<AuditReport> {
  const { sha256 } = store
  /** A hash of the state in which the last entry left each partner and key. */
  const states = new Map<string, string>()
  const discontinuities = new Map<string, number>()
  let head = EMPTY_AUDIT_HEAD
  let sealMatches = seal.sequence === EMPTY_AUDIT_HEAD.sequence && seal.hash === EMPTY_AUDIT_HEAD.hash

  const brokenAt = await verifyChain(store, sha256, (entry) => {
    head = entry
    if (entry.sequence === seal.sequence) sealMatches = entry.hash === seal.hash
    const subject = subjectOf(entry)
    if (subject === undefined) return
    const before = entry.before === undefined ? undefined : sha256(entry.before)
    if (
      before !== states.get(subject) && !discontinuities.has(subject) && discontinuities.size < maxDifferences
    ) {
      discontinuities.set(subject, entry.sequence)
    }
    if (entry.after !== undefined) states.set(subject, sha256(entry.after))
  })
  head = { sequence: head.sequence, hash: head.hash }
  if (brokenAt !== undefined || !sealMatches) return { brokenAt, sealMatches, differences: [], head }

  const suspects = new Set(discontinuities.keys())
  const compare = (subject: string, stored: string): void => {
    if (states.get(subject) === sha256(stored)) states.delete(subject)
    else if (suspects.size < maxDifferences) suspects.add(subject)
  }
  for await (const partner of readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit))) {
    compare(formatSubject('partner', partner.slug), partnerSnapshot(partner))
  }
  for await (const key of readPages<Key>((after, limit) => store.listKeys(undefined, after, limit))) {
    compare(formatSubject('key', key.id), keySnapshot(key, sha256))
  }
  // What is left has no row, or another one than its entries say.
  for (const subject of states.keys()) {
    if (suspects.size >= maxDifferences) break
    suspects.add(subject)
  }
  const differences = suspects.size === 0 ? [] : await recheck(store, suspects, discontinuities)
  return { brokenAt, sealMatches, differences, head }
}

/** Reads all about some subjects again: they may have been changed in order while the rows were read. */
async function recheck(
  store: AuditedStore,
  suspects: ReadonlySet<string>,
  discontinuities: ReadonlyMap<string, number>,
): Promise<AuditDifference[]> {
  const expected = new Map<string, string | undefined>()
  let last = 0
  for (let attempt = 1;; attempt++) {
    const entries = readPages<AuditEntry>((after, limit) => store.listAudit(after?.sequence ?? last, limit))
    for await (const entry of entries) {
      const subject = subjectOf(entry)
      if (subject !== undefined && suspects.has(subject)) expected.set(subject, entry.after)
      last = entry.sequence
    }
    const differences: AuditDifference[] = []
    for (const subject of suspects) {
      const stored = await readSnapshot(store, subject)
      const [expectedState, brokenAt] = [expected.get(subject), discontinuities.get(subject)]
      if (stored === expectedState && brokenAt === undefined) continue
      differences.push({ ...parseSubject(subject), expected: expectedState, stored, brokenAt })
    }
    const head = await store.auditHead()
    if (head.sequence === last || attempt === maxAttempts) return differences
  }
}

async function readSnapshot(store: AuditedStore, subject: string): Promise<string | undefined> {
  const { kind, id } = parseSubject(subject)
  if (kind === 'key') {
    const facts = await store.findKey(id)
    return facts && keySnapshot(facts.key, store.sha256)
  }
  const partner = await store.findPartner(id)
  return partner && partnerSnapshot(partner)
}

/** What an entry is about; `undefined` for content. */
function subjectOf({ partner, keyId }: AuditEntry): string | undefined {
  if (keyId !== undefined) return formatSubject('key', keyId)
  return partner === undefined ? undefined : formatSubject('partner', partner)
}

function formatSubject(kind: AuditDifference['kind'], id: string): string {
  return `${kind} ${id}`
}

function parseSubject(subject: string): Pick<AuditDifference, 'kind' | 'id'> {
  const at = subject.indexOf(' ')
  return { kind: subject.slice(0, at) as AuditDifference['kind'], id: subject.slice(at + 1) }
}

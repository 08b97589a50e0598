import type { Sha256 } from '../lib/digest.ts'
import { type AuditEntry, type AuditHead, type AuditLog, EMPTY_AUDIT_HEAD } from '../ports/audit.ts'
import type { Administration, Claim } from '../ports/changes.ts'
import { readKeys, readPartners, readRows, type Store } from '../ports/store.ts'
import {
  claimSnapshot,
  hashEntry,
  keySnapshot,
  moduleSnapshot,
  partnerSnapshot,
  webhookSnapshot,
} from './records.ts'

/** A partner, key, claim, module or webhook whose row, or whose entries, were changed outside of the service. */
export interface AuditDifference {
  readonly kind: 'partner' | 'key' | 'claim' | 'module' | 'webhook'
  /** The slug, the id or the name. */
  readonly id: string
  /** The state after its last entry, see `AuditEntry`; `undefined` without an entry. */
  readonly expected: string | undefined
  /** The stored state; `undefined` without a row. */
  readonly stored: string | undefined
  /** The sequence of the first entry that does not continue from the state after the entry before. */
  readonly brokenAt: number | undefined
}

type AuditedStore =
  & Omit<Administration, 'apply' | 'findDigests' | 'maxKeyLifetimeMs'>
  & Pick<Store, 'auditHead' | 'listAudit' | 'findKey' | 'listModules' | 'webhooks' | 'sha256'>

const pageSize = 500
const maxDifferences = 100

/** How often rows are read again because they changed during the comparison. */
const maxAttempts = 5

/**
 * Finds the first entry that was changed, removed, moved, repeated, added outside of the service, or cut off at the
 * end. An attacker who can write the whole store can rewrite the whole log: only a seal stored elsewhere reveals that.
 *
 * @param verified Called with each intact entry, in order.
 * @returns The sequence at which the log is broken; `undefined` for an intact log.
 */
export async function verifyChain(
  log: Pick<AuditLog, 'auditHead' | 'listAudit'>,
  sha256: Sha256,
  verified: (entry: AuditEntry) => void = () => undefined,
): Promise<number | undefined> {
  let last: AuditHead = EMPTY_AUDIT_HEAD
  // Also finds rows inserted before the first entry.
  let after = -Infinity
  for (;;) {
    // Read before each page, so that entries written during the read never look cut off: `readRows` cannot do that.
    const head = await log.auditHead()
    const entries = await log.listAudit(after, pageSize)
    for (const entry of entries) {
      const expected = last.sequence + 1
      if (entry.sequence !== expected || entry.hash !== hashEntry(last.hash, entry, sha256)) return expected
      last = entry
      after = entry.sequence
      verified(entry)
    }
    if (entries.length > 0) continue
    if (head.sequence === last.sequence) {
      return head.hash === last.hash ? undefined : Math.max(1, head.sequence)
    }
    return Math.min(head.sequence, last.sequence) + 1
  }
}

/**
 * Verifies the chain, replays it, and compares every partner, key, claim, module and webhook with the result.
 * Memory grows by about 200 bytes for each of them.
 *
 * @param seal A head that was stored elsewhere.
 * @returns The first broken entry of the chain, whether the entry of the seal exists with its hash, at most 100
 * differences, none of them after such an error, and the last verified entry.
 */
export async function verifyAuditLog(store: AuditedStore, seal: AuditHead = EMPTY_AUDIT_HEAD) {
  const { brokenAt, sealMatches, head, states, discontinuities } = await replay(store, seal)
  if (brokenAt !== undefined || !sealMatches) return { brokenAt, sealMatches, differences: [], head }
  const suspects = new Set(discontinuities.keys())
  for await (const subject of mismatches(store, states)) {
    if (suspects.size >= maxDifferences) break
    suspects.add(subject)
  }
  const differences = suspects.size === 0 ? [] : await recheck(store, suspects, discontinuities)
  return { brokenAt, sealMatches, differences, head }
}

async function replay(store: AuditedStore, seal: AuditHead) {
  const { sha256 } = store
  /** A hash of the state after the last entry, by subject. */
  const states = new Map<string, string>()
  /** The first entry that does not continue from the state before it, by subject. */
  const discontinuities = new Map<string, number>()
  let head = EMPTY_AUDIT_HEAD
  let sealMatches = seal.sequence === EMPTY_AUDIT_HEAD.sequence && seal.hash === EMPTY_AUDIT_HEAD.hash

  const brokenAt = await verifyChain(store, sha256, (entry) => {
    const { sequence, hash } = entry
    head = { sequence, hash }
    if (sequence === seal.sequence) sealMatches = hash === seal.hash
    const subject = entrySubject(entry)
    if (subject === undefined) return
    const before = entry.before === undefined ? undefined : sha256(entry.before)
    if (
      before !== states.get(subject) && !discontinuities.has(subject) && discontinuities.size < maxDifferences
    ) {
      discontinuities.set(subject, sequence)
    }
    if (entry.after === undefined) states.delete(subject)
    else states.set(subject, sha256(entry.after))
  })
  return { brokenAt, sealMatches, head, states, discontinuities }
}

/** The subjects whose row differs from the replayed state, then those without a row. Empties `states`. */
async function* mismatches(store: AuditedStore, states: Map<string, string>): AsyncGenerator<string> {
  for await (const [subject, stored] of readSnapshots(store)) {
    if (states.get(subject) !== store.sha256(stored) || !states.delete(subject)) yield subject
  }
  yield* states.keys()
}

async function* readSnapshots(
  store: AuditedStore,
): AsyncGenerator<readonly [subject: string, stored: string]> {
  for await (const partner of readPartners(store)) yield [`partner ${partner.slug}`, partnerSnapshot(partner)]
  for await (const key of readKeys(store)) yield [`key ${key.id}`, keySnapshot(key, store.sha256)]
  for await (const claim of readRows<Claim>((after, limit) => store.listClaims({}, after, limit))) {
    yield [`claim ${claim.id}`, claimSnapshot(claim, store.sha256)]
  }
  for (const module of await store.listModules()) {
    yield [`module ${module.name}`, moduleSnapshot(module)]
  }
  for (const webhook of await store.webhooks.listWebhooks()) {
    yield [`webhook ${webhook.id}`, webhookSnapshot(webhook)]
  }
}

/** Reads the suspects again: they may have changed legitimately while the rows were read. */
async function recheck(
  store: AuditedStore,
  suspects: ReadonlySet<string>,
  discontinuities: ReadonlyMap<string, number>,
): Promise<AuditDifference[]> {
  const expected = new Map<string, string | undefined>()
  let last = 0
  for (let attempt = 1;; attempt++) {
    const entries = readRows<AuditEntry>((after, limit) => store.listAudit(after?.sequence ?? last, limit))
    for await (const entry of entries) {
      const subject = entrySubject(entry)
      if (subject !== undefined && suspects.has(subject)) expected.set(subject, entry.after)
      last = entry.sequence
    }
    const differences: AuditDifference[] = []
    for (const subject of suspects) {
      const stored = await readSnapshot(store, subject)
      const expectedState = expected.get(subject)
      const brokenAt = discontinuities.get(subject)
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
  if (kind === 'claim') {
    const claim = await store.findClaim(id)
    return claim && claimSnapshot(claim, store.sha256)
  }
  if (kind === 'module') {
    const module = (await store.listModules()).find(({ name }) => name === id)
    return module && moduleSnapshot(module)
  }
  if (kind === 'webhook') {
    const webhook = (await store.webhooks.listWebhooks()).find((each) => each.id === id)
    return webhook && webhookSnapshot(webhook)
  }
  const partner = await store.findPartner(id)
  return partner && partnerSnapshot(partner)
}

/** The partner, key, claim, module or webhook of an entry; `undefined` for others. */
function entrySubject({ type, partner, keyId, subject }: AuditEntry): string | undefined {
  if (type.startsWith('webhook.')) return `webhook ${subject ?? ''}`
  if (type === 'module.defined' || type === 'module.forgotten') return `module ${subject ?? ''}`
  if (type.startsWith('claim.')) return `claim ${subject ?? ''}`
  if (keyId !== undefined) return `key ${keyId}`
  return partner === undefined || type === 'signups.deleted' ? undefined : `partner ${partner}`
}

/** @param subject Its kind, a space and its id. */
function parseSubject(subject: string): Pick<AuditDifference, 'kind' | 'id'> {
  // The id of a row that was added by hand may contain spaces.
  const at = subject.indexOf(' ')
  return { kind: subject.slice(0, at) as AuditDifference['kind'], id: subject.slice(at + 1) }
}

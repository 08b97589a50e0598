import fc from 'fast-check'
import t from 'tap'
import { sha256 } from '../../adapters/digest.ts'
import { hashEntry } from '../../core/audit/records.ts'
import { verifyChain } from '../../core/audit/verify.ts'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { type AuditEntry, type AuditHead, type AuditLog, EMPTY_AUDIT_HEAD } from '../../core/ports/audit.ts'
import type { Store } from '../../core/ports/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner } from '../support/partner.ts'

type UnhashedEntry = Omit<AuditEntry, 'hash'>

function entry(sequence: number, more: Partial<AuditEntry> = {}): UnhashedEntry {
  return {
    sequence,
    id: `act_${String(sequence).padStart(20, '0')}`,
    at: 1_000 + sequence,
    actor: 'grace',
    type: 'key.disabled',
    partner: 'acme',
    keyId: 'Zt81Zt81Zt81',
    subject: undefined,
    before: '{"state":"active"}',
    after: '{"state":"disabled"}',
    ...more,
  }
}

function withHashes(entries: readonly UnhashedEntry[], from: AuditHead = EMPTY_AUDIT_HEAD): AuditEntry[] {
  let { hash: seal } = from
  return entries.map((one) => ({ ...one, hash: seal = hashEntry(seal, one, sha256) }))
}

function headOf(entries: readonly AuditEntry[]): AuditHead {
  return entries.at(-1) ?? EMPTY_AUDIT_HEAD
}

/** A log that returns rows in this order, regardless of their sequence numbers. */
function logOf(entries: readonly AuditEntry[], head = headOf(entries)): AuditLog {
  return {
    listAudit: (after, limit) => entries.filter(({ sequence }) => sequence > after).slice(0, limit),
    auditHead: () => head,
    auditTail: () => -Infinity,
    auditIntruders: () => [],
  }
}

t.test('an unmodified log of any length is intact', async (t) => {
  t.equal(await verifyChain(logOf([]), sha256), undefined)
  for (const size of [1, 499, 500, 501, 1001]) {
    const entries = withHashes(Array.from({ length: size }, (_, index) => entry(index + 1)))
    t.equal(await verifyChain(logOf(entries), sha256), undefined, `${size} entries`)
    t.equal(
      await verifyChain(logOf(entries.slice(0, -1), headOf(entries)), sha256),
      size,
      'without the last entry',
    )
  }
})

t.test('sequence numbers count from 1 without gaps, even if the hashes match', async (t) => {
  for (
    const [numbers, sequence] of [[[2], 1], [[0, 1], 1], [[1, 3], 2], [[1, 2, 2], 3], [
      [1, 2, 4, 3],
      3,
    ]] as const
  ) {
    const entries = withHashes(numbers.map((number) => entry(number)))
    t.equal(await verifyChain(logOf(entries), sha256), sequence, `${numbers}`)
  }
})

t.test('a log that grows while it is read is intact', async (t) => {
  const entries = withHashes(Array.from({ length: 1400 }, (_, index) => entry(index + 1)))
  // Every read finds a few more.
  let known = 0
  const growing: AuditLog = {
    auditHead: () => headOf(entries.slice(0, known = Math.min(known + 7, entries.length))),
    auditTail: () => -Infinity,
    auditIntruders: () => [],
    listAudit(after, limit) {
      known = Math.min(known + 7, entries.length)
      return entries.slice(Math.max(0, after), known).slice(0, limit)
    },
  }
  t.equal(await verifyChain(growing, sha256), undefined)
  t.equal(known, entries.length, 'all entries were read')
})

t.test('a concurrent change is not reported as a difference', async (t) => {
  const store = await openMemoryStore()
  const { keys, issue } = await createPartner(store)
  const { key: { id } } = await issue()
  let isDisabled = false
  const report = await verifyAuditLog({
    ...store,
    async listKeys(...page: Parameters<Store['listKeys']>) {
      if (!isDisabled) await keys.disable(id)
      isDisabled = true
      return store.listKeys(...page)
    },
    async findKey(key: string) {
      const { state } = await keys.show(id)
      if (state === 'disabled') await keys.enable(id)
      return store.findKey(key)
    },
  })
  t.strictSame([report.brokenAt, report.sealMatches, report.differences], [undefined, true, []])
  t.equal((await keys.show(id)).state, 'active', 'differing rows are read again')
})

t.test('different entries have different hashed texts', (t) => {
  const text = fc.constantFrom('', '"', ',', 'null', '","', '\\', 'a', 'b', '\u0000', '\ud800', '\\ud800')
  const optional = fc.option(text, { nil: undefined })
  const any = fc.record({
    id: text,
    at: fc.integer(),
    actor: text,
    partner: optional,
    keyId: optional,
    subject: optional,
    before: optional,
    after: optional,
  })
  const read = (seal: string, one: UnhashedEntry): string => hashEntry(seal, one, (hashed) => hashed)
  fc.assert(fc.property(text, any, text, any, (seal, one, otherSeal, other) => {
    const same = JSON.stringify([seal, Object.entries(one).sort()]) ===
      JSON.stringify([otherSeal, Object.entries(other).sort()])
    return same === (read(seal, entry(1, one)) === read(otherSeal, entry(1, other)))
  }))
  t.not(
    read('', entry(1, { before: undefined })),
    read('', entry(1, { before: 'null' })),
    'null differs from the text "null"',
  )
  t.not(
    read('', entry(1, { partner: 'a', keyId: undefined })),
    read('', entry(1, { partner: undefined, keyId: 'a' })),
  )
  t.end()
})

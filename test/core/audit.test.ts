import fc from 'fast-check'
import t from 'tap'
import { sha256 } from '../../adapters/digest.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { hashEntry, verifyChain } from '../../core/audit/chain.ts'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { type AuditEntry, type AuditHead, type AuditLog, EMPTY_AUDIT_HEAD } from '../../core/ports/audit.ts'
import type { Store } from '../../core/ports/store.ts'
import { createTenant } from '../integration/trials/tenant.ts'

type Unsealed = Omit<AuditEntry, 'hash'>

function entry(sequence: number, more: Partial<AuditEntry> = {}): Unsealed {
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

function sealed(entries: readonly Unsealed[], from: AuditHead = EMPTY_AUDIT_HEAD): AuditEntry[] {
  let { hash: seal } = from
  return entries.map((one) => ({ ...one, hash: seal = hashEntry(seal, one, sha256) }))
}

function headOf(entries: readonly AuditEntry[]): AuditHead {
  return entries.at(-1) ?? EMPTY_AUDIT_HEAD
}

/** A log whose rows are read in this order, whatever their sequences are. */
function trailOf(entries: readonly AuditEntry[], head = headOf(entries)): AuditLog {
  return {
    listAudit: (after, limit) => entries.filter(({ sequence }) => sequence > after).slice(0, limit),
    auditHead: () => head,
    auditTail: () => -Infinity,
  }
}

const length = 12
const whole = sealed(Array.from({ length }, (_, index) => entry(index + 1)))
const broken = (entries: readonly AuditEntry[], head: AuditHead = headOf(whole)) =>
  verifyChain(trailOf(entries, head), sha256)

t.test('a log as it was written is intact, however long', async (t) => {
  t.equal(await broken(whole), undefined)
  t.equal(await broken([], EMPTY_AUDIT_HEAD), undefined)
  for (const size of [1, 499, 500, 501, 1001]) {
    const entries = sealed(Array.from({ length: size }, (_, index) => entry(index + 1)))
    t.equal(await verifyChain(trailOf(entries), sha256), undefined, `${size} entries`)
    t.equal(await verifyChain(trailOf(entries.slice(0, -1), headOf(entries)), sha256), size, 'less the last')
  }
})

t.test('tampering is found where it was done', async (t) => {
  for (let at = 0; at < length; at++) {
    const one = whole[at]!
    const sequence = at + 1
    const changes: Partial<AuditEntry>[] = [
      { id: `${one.id}x` },
      { at: one.at + 1 },
      { actor: 'mallory' },
      { type: 'key.enabled' },
      { partner: 'globex' },
      { partner: undefined },
      { keyId: 'other' },
      { keyId: undefined },
      { subject: 'read:plans' },
      { subject: '' },
      { before: '{}' },
      { before: undefined },
      { after: undefined },
      { before: one.after, after: one.before },
      { hash: '0'.repeat(64) },
      { sequence: sequence + 0.5 },
    ]
    for (const change of changes) {
      const found = await broken(whole.with(at, { ...one, ...change }))
      t.equal(found, sequence, `${JSON.stringify(change)} in ${sequence}`)
    }
    t.equal(await broken(whole.toSpliced(at, 1)), sequence, `${sequence} deleted`)
    t.equal(await broken(whole.slice(0, at)), sequence, `cut off from ${sequence}`)
    t.equal(await broken(whole.toSpliced(at, 0, { ...one, hash: one.hash })), sequence + 1, 'repeated')
    const resealed = sealed([{ ...one, actor: 'mallory' }], headOf(whole.slice(0, at)))
    // The hash of the last entry is in the head, that of any other in the entry after it.
    t.equal(await broken(whole.with(at, resealed[0]!)), Math.min(sequence + 1, length), 'sealed anew')
    const next = whole[at + 1]
    if (next === undefined) continue
    const swapped = whole.with(at, { ...next, sequence }).with(at + 1, { ...one, sequence: sequence + 1 })
    t.equal(await broken(swapped), sequence, `${sequence} and the next swapped`)
    t.equal(await broken(whole.with(at, next).with(at + 1, one)), sequence, 'with their sequences')
  }
})

t.test('rows behind the store’s back and a head that is not the end are found', async (t) => {
  const [added] = sealed([entry(length + 1)], headOf(whole))
  t.equal(await broken([...whole, added!]), length + 1, 'a row after the end')
  t.equal(await broken([{ ...whole[0]!, sequence: 0 }, ...whole]), 1, 'a row before the first')
  t.equal(await broken([{ ...whole[0]!, sequence: -7 }, ...whole]), 1)
  t.equal(await broken(whole, { ...headOf(whole), hash: 'f'.repeat(64) }), length, 'another seal')
  t.equal(await broken(whole, EMPTY_AUDIT_HEAD), 1, 'a head that was set back')
  t.equal(await broken([], headOf(whole)), 1, 'a trail that was emptied')
  t.equal(await broken([], { sequence: 0, hash: 'f'.repeat(64) }), 1)
})

t.test('numbers count from 1, one by one, whatever the seals say', async (t) => {
  for (
    const [numbers, sequence] of [[[2], 1], [[0, 1], 1], [[1, 3], 2], [[1, 2, 2], 3], [
      [1, 2, 4, 3],
      3,
    ]] as const
  ) {
    const entries = sealed(numbers.map((number) => entry(number)))
    t.equal(await verifyChain(trailOf(entries), sha256), sequence, `${numbers}`)
  }
})

t.test('a log that grows while it is read is intact', async (t) => {
  const entries = sealed(Array.from({ length: 1400 }, (_, index) => entry(index + 1)))
  // Every question finds a few more.
  let known = 0
  const growing: AuditLog = {
    auditHead: () => headOf(entries.slice(0, known = Math.min(known + 7, entries.length))),
    auditTail: () => -Infinity,
    listAudit(after, limit) {
      known = Math.min(known + 7, entries.length)
      return entries.slice(Math.max(0, after), known).slice(0, limit)
    },
  }
  t.equal(await verifyChain(growing, sha256), undefined)
  t.equal(known, entries.length, 'all of it was read')
})

t.test('changes while the rows are read are no differences', async (t) => {
  const store = createMemoryStore()
  const { keys, issue } = await createTenant(store)
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
  t.equal((await keys.show(id)).state, 'active', 'the rows that differed were read again')
})

t.test('no two entries have the same hashed text', (t) => {
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
  const read = (seal: string, one: Unsealed): string => hashEntry(seal, one, (hashed) => hashed)
  fc.assert(fc.property(text, any, text, any, (seal, one, otherSeal, other) => {
    const same = JSON.stringify([seal, Object.entries(one).sort()]) ===
      JSON.stringify([otherSeal, Object.entries(other).sort()])
    return same === (read(seal, entry(1, one)) === read(otherSeal, entry(1, other)))
  }))
  t.not(read('', entry(1, { before: undefined })), read('', entry(1, { before: 'null' })), 'null is no text')
  t.not(
    read('', entry(1, { partner: 'a', keyId: undefined })),
    read('', entry(1, { partner: undefined, keyId: 'a' })),
  )
  t.end()
})

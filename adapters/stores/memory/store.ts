/** A store in the memory of its process, for tests, demonstrations and benchmarks. */
import { type AuditRecord, chainRecords, signupsAuditRecord } from '../../../core/audit/records.ts'
import { type AuditEntry, type AuditHead, EMPTY_AUDIT_HEAD } from '../../../core/ports/audit.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { RecordedEndpoint, Store } from '../../../core/ports/store.ts'
import { changeEvents, signupEvent } from '../../../core/webhooks/events.ts'
import { sha256 } from '../../digest.ts'
import { newSettings, randomHex } from '../schema.ts'
import { createContent } from './content.ts'
import { createPartnersAndKeys } from './partners-and-keys.ts'
import { createReports } from './reports.ts'
import { createSignups } from './signups.ts'
import { createWebhooks } from './webhooks.ts'

/** How a memory store is made. */
export interface MemoryStoreOptions {
  /** First part of every key: 2–10 lower-case letters or digits, a letter first. Default `spk`. */
  readonly keyPrefix?: string
}

/**
 * Creates an empty store in memory. All of its methods are synchronous. Meant for up to some 10,000 profiles.
 *
 * @throws {StoreError} `refused` when `keyPrefix` is malformed.
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { lookups, keys, apply } = createPartnersAndKeys()
  const entries: AuditEntry[] = []
  const endpoints = new Map<string, RecordedEndpoint>()
  const { webhooks, addEvents, deleteDeliveries } = createWebhooks(append)
  const { signupStore, all: signups, removed } = createSignups(
    keys,
    (signup) => addEvents(() => [signupEvent(signup)]),
    (deleted, claims, context) => {
      const deliveries = deleteDeliveries(deleted.map((signup) => signupEvent(signup).id))
      append([signupsAuditRecord(deleted.map(({ partner }) => partner), deliveries, claims)], context)
    },
  )
  const storeId = randomHex(8)
  const changes = { facts: 0, content: 0 }
  let revision = currentRevision()

  function currentRevision(): Revision {
    return { facts: `${storeId}.${changes.facts}`, content: `${storeId}.${changes.content}` }
  }

  function auditHead(): AuditHead {
    const { sequence, hash } = entries.at(-1) ?? EMPTY_AUDIT_HEAD
    return { sequence, hash }
  }

  function entriesOf(partner: string | undefined): readonly AuditEntry[] {
    return partner === undefined ? entries : entries.filter((entry) => entry.partner === partner)
  }

  function append(auditRecords: readonly AuditRecord[], context: AuditContext): void {
    entries.push(...chainRecords(auditHead(), auditRecords, context, sha256))
  }

  function commit(kind: keyof Revision, auditRecords: readonly AuditRecord[], context: AuditContext): void {
    append(auditRecords, context)
    changes[kind]++
    revision = currentRevision()
  }

  return {
    settings: newSettings(options.keyPrefix),
    sha256,
    close() {},
    check() {},
    revision: () => revision,
    directoryRevision: () => revision.content,
    ...lookups,
    maxKeyLifetimeMs: () =>
      JSON.parse(entries.findLast(({ type }) => type === 'store.updated')?.after ?? '{}').maxKeyLifetimeMs,
    apply(changes, ifFacts, context) {
      if (ifFacts !== revision.facts) return false
      const changed = apply(changes)
      commit('facts', changed.auditRecords, context)
      addEvents(() => changeEvents(changed, context))
      return true
    },
    ...createContent((auditRecords, context) => commit('content', auditRecords, context)),
    ...signupStore,
    ...createReports(keys, signups, removed, entries),
    recordEndpoints(recorded) {
      const places = new Set(recorded.map(({ method, path }) => `${method} ${path}`))
      for (const { name, method, path } of endpoints.values()) {
        if (places.has(`${method} ${path}`)) endpoints.delete(name)
      }
      for (const endpoint of recorded) endpoints.set(endpoint.name, endpoint)
    },
    listEndpoints: () => [...endpoints.keys()].sort().map((name) => endpoints.get(name)!),
    auditHead,
    listAudit: (after, limit, partner) =>
      entriesOf(partner).filter(({ sequence }) => sequence > after).slice(0, limit),
    auditTail: (count, partner) => entriesOf(partner).at(-count - 1)?.sequence ?? -Infinity,
    webhooks,
  }
}

/** A store that lives and dies with its process: for tests, demonstrations and benchmarks. */
import { andThen } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { Store } from '../../../core/ports/store.ts'
import { sha256 } from '../../digest.ts'
import { removalAuditRecord } from '../audit-log.ts'
import { collect } from '../content-text.ts'
import { newSettings, randomHex } from '../settings.ts'
import { createAuditLog } from './audit.ts'
import { createContentTables, createDirectory, importRecords, removalObstacles } from './content.ts'
import { createPartnersAndKeys } from './partners-and-keys.ts'
import { createReports } from './reports.ts'
import { createSignups } from './signups.ts'

/** How a memory store is made. */
export interface MemoryStoreOptions {
  /** First part of every key: 2–10 lower-case letters or digits, a letter first. Default `spk`. */
  readonly keyPrefix?: string
}

/**
 * An empty store in memory, all of whose methods are synchronous. Meant for up to some 10,000 profiles.
 *
 * @throws {StoreError} `refused` when `keyPrefix` is malformed.
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const facts = createPartnersAndKeys()
  const contentTables = createContentTables()
  const directory = createDirectory(contentTables)
  const auditLog = createAuditLog()
  const { all, createSignup, listSignups } = createSignups(facts)
  const reports = createReports({ facts, signups: { all }, trail: auditLog })
  const storeId = randomHex(8)
  let factsChanges = 0
  let contentChanges = 0
  let revision = currentRevision()

  function currentRevision(): Revision {
    return { facts: `${storeId}.${factsChanges}`, content: `${storeId}.${contentChanges}` }
  }

  function bumpContent(): void {
    contentChanges++
    revision = currentRevision()
    directory.invalidate()
  }

  return {
    settings: newSettings(options.keyPrefix),
    sha256,
    close() {},
    check() {},

    revision: () => revision,
    directoryRevision: () => revision.content,
    findKey: facts.findKey,
    recordKeyUses: facts.recordKeyUses,

    listProfiles: directory.listProfiles,
    findProfile: directory.findProfile,
    countProfiles: directory.countProfiles,
    nextProfileChangeAt: directory.nextProfileChangeAt,
    listIndustries: () => Array.from(contentTables.industries.values(), (kept) => kept.record),

    findBanner(partner) {
      const stored = contentTables.banners.get(partner)
      return stored && { ...stored.record, updatedAt: stored.updatedAt }
    },
    listPlans: () => Array.from(contentTables.plans.values(), (kept) => kept.record),

    listPartners: facts.listPartners,
    findPartner: facts.findPartner,
    listKeys: facts.listKeys,
    apply(changes, ifFacts, stamp) {
      if (ifFacts !== revision.facts) return false
      auditLog.append(facts.apply(changes), stamp)
      factsChanges++
      revision = currentRevision()
      return true
    },

    importContent(kind, records, importOptions) {
      return andThen(collect(records), (all) => {
        const { report, auditRecords } = importRecords(contentTables, kind, all, importOptions)
        if (auditRecords.length > 0) {
          auditLog.append(auditRecords, { actor: importOptions.actor, at: importOptions.now })
          bumpContent()
        }
        return report
      })
    },
    exportContent(kind) {
      return [...contentTables[kind].values()]
        .sort((a, b) => compareCodePoints(String(a.row[0]), String(b.row[0])))
        .map(({ record }) => record)
    },
    removeContent(kind, slugs, stamp) {
      const removed = new Set(slugs)
      const obstacles = removalObstacles(contentTables, kind, removed)
      if (removed.size > 0 && obstacles.missing.length === 0 && obstacles.used.length === 0) {
        for (const slug of removed) contentTables[kind].delete(slug)
        auditLog.append([removalAuditRecord(kind, removed)], stamp)
        bumpContent()
      }
      return obstacles
    },

    createSignup,
    listSignups,
    ...reports,
    listAudit: auditLog.listAudit,
    auditTail: auditLog.auditTail,
    auditHead: auditLog.auditHead,
  }
}

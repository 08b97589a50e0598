/** A store that lives and dies with its process: for tests, demonstrations and benchmarks. */
import { after } from '../../../core/after.ts'
import { compareCodePoints } from '../../../core/content/fold.ts'
import type { Revision, Store } from '../../../core/ports.ts'
import { sha256 } from '../../digest.ts'
import { gather, RECORD_FORMATS } from '../record-text.ts'
import { newSettings, randomHex } from '../settings.ts'
import { removalNote } from '../trail.ts'
import { createShelves, importRecords, removalObstacles } from './content.ts'
import { createDirectory } from './directory.ts'
import { createFacts } from './facts.ts'
import { createReports } from './reports.ts'
import { createSignups } from './signups.ts'
import { createTrail } from './trail.ts'

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
  const facts = createFacts()
  const shelves = createShelves()
  const directory = createDirectory(shelves)
  const trail = createTrail()
  const { all, createSignup, listSignups } = createSignups(facts)
  const reports = createReports({ facts, signups: { all }, trail })
  const storeId = randomHex(8)
  let factsChanges = 0
  let contentChanges = 0
  let revision = currentRevision()

  function currentRevision(): Revision {
    return { facts: `${storeId}.${factsChanges}`, content: `${storeId}.${contentChanges}` }
  }

  function contentChanged(): void {
    contentChanges++
    revision = currentRevision()
    directory.contentChanged()
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
    listIndustries: () => Array.from(shelves.industries.values(), (kept) => kept.record),

    findBanner(partner) {
      const kept = shelves.banners.get(partner)
      return kept && { ...kept.record, updatedAt: kept.updatedAt }
    },
    listPlans: () => Array.from(shelves.plans.values(), (kept) => kept.record),

    listPartners: facts.listPartners,
    findPartner: facts.findPartner,
    listKeys: facts.listKeys,
    apply(changes, ifFacts, stamp) {
      if (ifFacts !== revision.facts) return false
      trail.append(facts.apply(changes), stamp)
      factsChanges++
      revision = currentRevision()
      return true
    },

    importContent(kind, records, importOptions) {
      return after(gather(records), (all) => {
        const { report, note } = importRecords(shelves, kind, all, importOptions)
        if (note !== undefined) {
          trail.append([note], { actor: importOptions.actor, at: importOptions.now })
          contentChanged()
        }
        return report
      })
    },
    exportContent(kind) {
      const format = RECORD_FORMATS[kind]
      return Array.from(shelves[kind].values(), (kept) => kept.record)
        .sort((a, b) => compareCodePoints(format.slug(a), format.slug(b)))
    },
    removeContent(kind, slugs, stamp) {
      const removed = new Set(slugs)
      const obstacles = removalObstacles(shelves, kind, removed)
      if (removed.size > 0 && obstacles.missing.length === 0 && obstacles.used.length === 0) {
        for (const slug of removed) shelves[kind].delete(slug)
        trail.append([removalNote(kind, removed)], stamp)
        contentChanged()
      }
      return obstacles
    },

    createSignup,
    listSignups,
    ...reports,
    listAudit: trail.listAudit,
    auditTail: trail.auditTail,
    auditHead: trail.auditHead,
  }
}

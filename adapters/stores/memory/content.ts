import type { AuditRecord } from '../../../core/audit/records.ts'
import { createProfileIndex } from '../../../core/content/profile-index.ts'
import { andThen } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { ProfileCard } from '../../../core/model.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import {
  type ContentAdministration,
  type ContentKind,
  type ContentRecords,
  isPublic,
  type ProfileRecord,
} from '../../../core/ports/content.ts'
import type { Catalog, Directory } from '../../../core/ports/directory.ts'
import {
  type ContentTable,
  type ContentTables,
  createContentAdministration,
  type Draft,
  type RunContentChange,
} from '../content.ts'
import { done, runWork } from '../sql/database.ts'
import { CONTENT_TABLES } from '../tables.ts'

type Stored<K extends ContentKind> = Map<string, Draft<ContentRecords[K]>>

/**
 * All content by kind and slug (banners: partner), and the directory over it, which is indexed once after each change.
 *
 * @param onChange Called once after each change, with its audit records.
 */
export function createContent(
  onChange: (auditRecords: readonly AuditRecord[], context: AuditContext) => void,
): ContentAdministration & Omit<Directory, 'directoryRevision'> & Catalog {
  const content: { readonly [K in ContentKind]: Stored<K> } = {
    profiles: new Map(),
    industries: new Map(),
    plans: new Map(),
    banners: new Map(),
  }
  const { profiles, industries, plans, banners } = content
  let index: ReturnType<typeof createProfileIndex> | undefined

  const tables: ContentTables = {
    profiles: tableOf('profiles', profiles),
    industries: {
      ...tableOf('industries', industries),
      findReferenced(slugs) {
        const remaining = [...industries.values()].filter(({ slug }) => !slugs.includes(slug))
        return done([
          ...Array.from(profiles.values(), ({ record }) => record.industry),
          ...remaining.flatMap(({ record }) => record.parentSlug ?? []),
        ])
      },
    },
    plans: tableOf('plans', plans),
    banners: tableOf('banners', banners),
  }

  // The tables have no statements to wait for.
  const change: RunContentChange = (context, dryRun, work) =>
    andThen(runWork(work(tables, !dryRun), () => []), ({ result, auditRecords }) => {
      if (!dryRun && auditRecords.length > 0) {
        onChange(auditRecords, context)
        index = undefined
      }
      return result
    })

  function toCard({ record, updatedAt }: Draft<ProfileRecord>, publishedAt: number): ProfileCard {
    const { slug, name, headline, country, logoUrl } = record
    const industry = { slug: record.industry, name: industries.get(record.industry)!.record.name }
    return { slug, name, headline, country, industry, logoUrl, publishedAt, updatedAt }
  }

  const indexed = () =>
    index ??= createProfileIndex([...profiles.values()].flatMap((stored) => {
      const { publishedAt, description, tags, visibleTo } = stored.record
      if (publishedAt === undefined) return []
      return [{ publishedAt, description, tags, visibleTo, card: toCard(stored, publishedAt) }]
    }))

  return {
    ...createContentAdministration(change),

    exportContent(kind) {
      return [...content[kind].values()]
        .sort((a, b) => compareCodePoints(a.slug, b.slug))
        .map(({ record }) => record)
    },

    listProfiles: (...query) => indexed().listProfiles(...query),

    findProfile(partner, slug, now) {
      const stored = profiles.get(slug)
      if (stored === undefined || !isPublic(stored.record, partner, now)) return undefined
      const { visibleTo: _, ...visible } = stored.record
      return { ...visible, ...toCard(stored, stored.record.publishedAt!) }
    },

    countProfiles: (...query) => indexed().countProfiles(...query),

    nextProfileChangeAt: (...query) => indexed().nextProfileChangeAt(...query),

    listIndustries: () => Array.from(industries.values(), ({ record }) => record),

    findBanner(partner) {
      const stored = banners.get(partner)
      return stored && { ...stored.record, updatedAt: stored.updatedAt }
    },

    listPlans: () => Array.from(plans.values(), ({ record }) => record),
  }
}

function tableOf<K extends ContentKind>(kind: K, stored: Stored<K>): ContentTable<ContentRecords[K]> {
  return {
    batchSize: Infinity,
    find: (slugs) =>
      done(
        new Map(slugs.flatMap((slug) => {
          const draft = stored.get(slug)
          return draft === undefined ? [] : [[slug, draft.row]]
        })),
      ),
    write(drafts) {
      // A copy of the record: the caller may change its own later.
      for (const draft of drafts) {
        stored.set(draft.slug, { ...draft, record: CONTENT_TABLES[kind].read(draft.row) })
      }
      return done(undefined)
    },
    remove: (slugs) => done(slugs.forEach((slug) => stored.delete(slug))),
  }
}

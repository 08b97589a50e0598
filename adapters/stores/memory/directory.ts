import { createProfileIndex, type IndexedProfile } from '../../../core/content/profile-index.ts'
import type { ProfileCard } from '../../../core/model.ts'
import { isPublic, type ProfileRecord } from '../../../core/ports/content.ts'
import type { Catalog, Directory } from '../../../core/ports/directory.ts'
import type { Draft } from '../content-import.ts'
import type { Content } from './content.ts'

/** The directory over the content of a memory store, which is indexed once after each change of content. */
export function createDirectory(content: Content) {
  let index: ReturnType<typeof createProfileIndex> | undefined
  const indexed = () =>
    index ??= createProfileIndex(
      [...content.profiles.values()].flatMap((stored) => toIndexed(content, stored)),
    )

  const directory = {
    listProfiles: (...query) => indexed().listProfiles(...query),

    findProfile(partner, slug, now) {
      const stored = content.profiles.get(slug)
      if (stored === undefined || !isPublic(stored.record, partner, now)) return undefined
      const { visibleTo: _, ...visible } = stored.record
      return { ...visible, ...toCard(content, stored, stored.record.publishedAt!) }
    },

    countProfiles: (...query) => indexed().countProfiles(...query),

    nextProfileChangeAt: (...query) => indexed().nextProfileChangeAt(...query),

    listIndustries: () => Array.from(content.industries.values(), ({ record }) => record),

    findBanner(partner) {
      const stored = content.banners.get(partner)
      return stored && { ...stored.record, updatedAt: stored.updatedAt }
    },

    listPlans: () => Array.from(content.plans.values(), ({ record }) => record),
  } satisfies Directory & Catalog

  /** To be called after every change of content. */
  return { directory, invalidate: () => index = undefined }
}

function toIndexed(content: Content, stored: Draft<ProfileRecord>): IndexedProfile[] {
  const { publishedAt, description, tags, visibleTo } = stored.record
  if (publishedAt === undefined) return []
  return [{ publishedAt, description, tags, visibleTo, card: toCard(content, stored, publishedAt) }]
}

function toCard(
  { industries }: Content,
  { record, updatedAt }: Draft<ProfileRecord>,
  publishedAt: number,
): ProfileCard {
  const { slug, name, headline, country, logoUrl } = record
  const industry = { slug: record.industry, name: industries.get(record.industry)!.record.name }
  return { slug, name, headline, country, industry, logoUrl, publishedAt, updatedAt }
}

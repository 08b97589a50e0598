import type { ProfileRecord } from './records.ts'

/** Whether a profile is in the public set of `partner` at `now`: published, due, and visible to that partner. */
export function isPublic(
  profile: Pick<ProfileRecord, 'publishedAt' | 'visibleTo'>,
  partner: string,
  now: number,
): boolean {
  if (profile.publishedAt === undefined || profile.publishedAt > now) return false
  return profile.visibleTo === undefined || profile.visibleTo.includes(partner)
}

import * as v from 'valibot'
import { fields, instant, partnerSlug, type References, text, webUrl } from './fields.ts'
import type { BannerRecord } from './records.ts'

/** The line of a banner. */
export function bannerLine(references: References): v.GenericSchema<unknown, BannerRecord> {
  return v.pipe(
    fields({
      partner: partnerSlug(references),
      title: text(200),
      body: v.nullish(text(5_000)),
      image_url: v.nullish(webUrl()),
      image_alt: v.nullish(text(500)),
      link_url: v.nullish(webUrl()),
      link_label: v.nullish(text(200)),
      starts_at: v.nullish(instant()),
      ends_at: v.nullish(instant()),
    }, { low: 'starts_at', high: 'ends_at', relation: 'after' }),
    v.transform((line) => ({
      partner: line.partner,
      title: line.title,
      body: line.body ?? undefined,
      imageUrl: line.image_url ?? undefined,
      imageAlt: line.image_alt ?? undefined,
      linkUrl: line.link_url ?? undefined,
      linkLabel: line.link_label ?? undefined,
      startsAt: line.starts_at ?? undefined,
      endsAt: line.ends_at ?? undefined,
    })),
  )
}

/** The fields of a banner in the order of an export. */
export function bannerFields(banner: BannerRecord): unknown {
  return {
    partner: banner.partner,
    title: banner.title,
    body: banner.body ?? null,
    image_url: banner.imageUrl ?? null,
    image_alt: banner.imageAlt ?? null,
    link_url: banner.linkUrl ?? null,
    link_label: banner.linkLabel ?? null,
    starts_at: banner.startsAt === undefined ? null : new Date(banner.startsAt).toISOString(),
    ends_at: banner.endsAt === undefined ? null : new Date(banner.endsAt).toISOString(),
  }
}

import { type GenericSchema, metadata, nullable, object, pipe, strictObject } from 'valibot'
import { after } from '../after.ts'
import { Problem } from '../http/problem.ts'
import { optionalRfc3339, rfc3339 } from '../http/time.ts'
import type { Banner } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { MaybePromise } from '../ports.ts'
import { defineRoute, type HandlerPorts, type Route } from './route.ts'
import { instantShape, textShape, urlShape } from './shapes.ts'

interface WireBanner {
  readonly title: string
  readonly body: string | null
  readonly image_url: string | null
  readonly image_alt: string | null
  readonly link_url: string | null
  readonly link_label: string | null
  readonly starts_at: string | null
  readonly ends_at: string | null
  readonly updated_at: string
}

/** Schema of a banner on the wire. */
export const bannerShape: GenericSchema<unknown, WireBanner> = pipe(
  strictObject({
    title: textShape('What it says.', 'Meet the makers behind the directory', 200),
    body: nullable(textShape('What it says below that.', 'Open workshops in twelve countries.', 5000)),
    image_url: nullable(urlShape('Its picture.', 'https://assets.example/banners/open-workshops.jpg')),
    image_alt: nullable(
      textShape('The picture in words: goes into `alt`.', 'A weaver at a wooden loom beside a window', 500),
    ),
    link_url: nullable(urlShape('Where it leads.', 'https://demo.example/open-workshops')),
    link_label: nullable(textShape('What the link says.', 'Find a workshop', 200)),
    starts_at: nullable(instantShape('First instant at which it shows.', '2026-01-01T00:00:00.000Z')),
    ends_at: nullable(instantShape('Instant from which it shows no more.', '2027-01-01T00:00:00.000Z')),
    updated_at: instantShape('When any of it changed last.', '2026-01-01T00:00:00.000Z'),
  }),
  metadata({ title: 'Banner', description: 'The banner of a partner.' }),
)

/** The partner's banner as the wire has it, or `null` when none is in its dates. */
export function currentBanner(grant: Grant, ports: HandlerPorts): MaybePromise<WireBanner | null> {
  return after(ports.offers.findBanner(grant.partner.slug), (banner) => {
    if (banner === undefined || (banner.startsAt ?? -Infinity) > grant.now) return null
    return (banner.endsAt ?? Infinity) > grant.now ? presentBanner(banner) : null
  })
}

function presentBanner(banner: Banner): WireBanner {
  return {
    title: banner.title,
    body: banner.body ?? null,
    image_url: banner.imageUrl ?? null,
    image_alt: banner.imageAlt ?? null,
    link_url: banner.linkUrl ?? null,
    link_label: banner.linkLabel ?? null,
    starts_at: optionalRfc3339(banner.startsAt),
    ends_at: optionalRfc3339(banner.endsAt),
    updated_at: rfc3339(banner.updatedAt),
  }
}

export const banner: Route = defineRoute({
  name: 'banner',
  access: 'key',
  method: 'GET',
  path: '/public/banner',
  scope: 'read:banner',
  summary: 'Partner banner',
  description: 'The banner of the partner that shows now.',
  problems: ['banner_not_found'],
  parameters: {},
  reply: object({ data: bannerShape }),
  limits: ['key'],
  dependsOn: 'content',
  handle: (_input, grant, ports) =>
    after(currentBanner(grant, ports), (data) => {
      if (data === null) throw new Problem('banner_not_found')
      return { data }
    }),
})

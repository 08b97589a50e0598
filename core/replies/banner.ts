import { type GenericSchema, metadata, nullable, pipe, strictObject } from 'valibot'
import type { Banner } from '../wire.ts'
import { instantShape, textShape, urlShape } from './shapes.ts'

/** Schema of a banner on the wire. */
export const bannerShape: GenericSchema<unknown, Banner> = pipe(
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

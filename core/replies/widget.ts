import { array, type GenericSchema, metadata, nullable, pipe, strictObject } from 'valibot'
import { PROFILES_SHOWN } from '../routes/widget.ts'
import { bannerShape } from './banner.ts'
import { cardShape } from './card.ts'
import { countriesShape, industriesShape, plansShape } from './lists.ts'
import { slugShape, textShape } from './shapes.ts'
import type { Widget } from '../wire.ts'

/** All that a widget draws. */
export const widgetShape: GenericSchema<unknown, Widget> = strictObject({
  partner: strictObject({
    slug: slugShape('What the partner is addressed by.', 'demo'),
    name: textShape('Name to show.', 'Demo partner', 200),
  }),
  banner: nullable(bannerShape),
  profiles: pipe(
    array(cardShape),
    metadata({ description: 'The newest profiles.', maxItems: PROFILES_SHOWN }),
  ),
  countries: countriesShape,
  industries: industriesShape,
  plans: plansShape,
})

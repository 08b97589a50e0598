import { array, type GenericSchema, metadata, nullable, pipe, RFC_EMAIL_REGEX, strictObject } from 'valibot'
import { cardMembers } from './card.ts'
import { countShape, formShape, textShape, urlShape } from './shapes.ts'
import type { Profile } from '../wire.ts'

/** All that is public of a profile. */
export const profileShape: GenericSchema<unknown, Profile> = pipe(
  strictObject({
    ...cardMembers,
    description: nullable(
      textShape(
        'What it says of itself.',
        'Books part-loads on small coasters that call at harbours the big lines skip.',
        5000,
      ),
    ),
    website_url: nullable(urlShape('Its website.', 'https://nordlichter-frachtkontor.example')),
    city: nullable(textShape('The place that it is in.', 'Hamburg', 200)),
    founded_year: nullable(countShape('The year that it began in.', 1974, 9999)),
    employees: nullable(pipe(
      strictObject({
        min: nullable(countShape('At least so many.', 51)),
        max: nullable(countShape('At most so many.', 200)),
      }),
      metadata({ description: 'How many people work there.' }),
    )),
    tags: pipe(
      array(textShape('One word for it.', 'short-sea', 50)),
      metadata({ description: 'Words for it.', maxItems: 20 }),
    ),
    contact: nullable(pipe(
      strictObject({
        // What HTML forms take (and the import): `format: email` promises less (RFC 5321 §4.1.2).
        email: nullable(
          formShape(
            'Address for mail.',
            'kontor@nordlichter-frachtkontor.example',
            RFC_EMAIL_REGEX.source,
            254,
          ),
        ),
        phone: nullable(textShape('Number to call.', '+49 40 66969 207', 50)),
      }),
      metadata({ description: 'How to reach it.' }),
    )),
    links: pipe(
      array(strictObject({
        rel: textShape('What the link is for.', 'press', 50),
        url: urlShape('Where it leads.', 'https://nordlichter-frachtkontor.example/press'),
      })),
      metadata({ description: 'More of it elsewhere.', maxItems: 20 }),
    ),
  }),
  metadata({ title: 'Profile', description: 'All that is public of a profile.' }),
)

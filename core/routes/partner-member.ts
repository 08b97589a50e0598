import { type GenericSchema, metadata, pipe, string } from 'valibot'
import { SLUG_PATTERN } from '../content/slug.ts'

/** The member of a body that names the partner. That it is the key's own, the policy decides. */
export const partnerMember: GenericSchema<unknown, string> = pipe(
  string(),
  metadata({
    description: 'Slug of the partner that the key belongs to.',
    pattern: SLUG_PATTERN.source,
    maxLength: 80,
    examples: ['demo'],
  }),
)

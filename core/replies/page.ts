import { type GenericSchema, metadata, nullable, pipe, strictObject, string } from 'valibot'
import { CURSOR } from '../routes/paging.ts'
import type { Page } from '../wire.ts'
import { countShape, flagShape } from './shapes.ts'

/** The place of a page in its list. */
export const pageShape: GenericSchema<unknown, Page> = pipe(
  strictObject({
    limit: countShape('How many rows a page has at most.', 20, 100),
    has_more: flagShape('Whether there is a page after this one.', true),
    next_cursor: nullable(
      pipe(
        string(),
        metadata({
          description: 'What to send as `cursor` for the next page.',
          ...CURSOR,
          examples: ['WyJub3JkbGljaHQiLCJhIl0.5b1c0f9d2e7a4386b0d1f2a3c4e5d6f7'],
        }),
      ),
    ),
  }),
  metadata({ title: 'Page', description: 'The place of a page in its list.' }),
)

/** What every list that pages says of it. */
import { type GenericSchema, metadata, nullable, pipe, strictObject, string } from 'valibot'
import { type Parameter, single } from '../http/parameters.ts'
import type { Page } from './route.ts'
import { countShape, flagShape, formShape } from './shapes.ts'

const pattern = '^[A-Za-z0-9_.-]+$'
const exampleCursor = 'WyJub3JkbGljaHQiLCJhIl0.5b1c0f9d2e7a4386b0d1f2a3c4e5d6f7'
/** As long as a target may be: a cursor is never longer. */
const maxLength = 8192

/** The place of a page in its list. */
export const pageShape: GenericSchema<unknown, Page> = pipe(
  strictObject({
    limit: countShape('How many rows a page has at most.', 20, 100),
    has_more: flagShape('Whether there is a page after this one.', true),
    next_cursor: nullable(
      formShape('What to send as `cursor` for the next page.', exampleCursor, pattern, maxLength),
    ),
  }),
  metadata({ title: 'Page', description: 'The place of a page in its list.' }),
)

/** The parameter that asks for the next page. */
export const cursorParameter: Parameter<string | undefined> = single(
  'text',
  pipe(string(), metadata({ pattern, maxLength, examples: [exampleCursor] })),
  undefined,
  '`next_cursor` of the page before',
)

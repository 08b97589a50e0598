import * as v from 'valibot'
import type { Industry } from '../model.ts'
import { fields, slug, text } from './fields.ts'

/** The line of an industry. Whether its parent exists is known only after the last line. */
export function industryLine(): v.GenericSchema<unknown, Industry> {
  return v.pipe(
    fields({ slug: slug(), name: text(200), parent_slug: v.nullish(slug()) }),
    v.transform((line) => ({ slug: line.slug, name: line.name, parentSlug: line.parent_slug ?? undefined })),
  )
}

/** The fields of an industry in the order of an export. */
export function industryFields({ slug, name, parentSlug }: Industry): unknown {
  return { slug, name, parent_slug: parentSlug ?? null }
}

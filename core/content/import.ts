import type { Partner } from '../model.ts'
import type { ImportOptions, ImportReport, Store } from '../ports.ts'
import { readPages } from '../read-pages.ts'
import { createLineReader, type LineErrors } from './lines.ts'
import type { References } from './fields.ts'
import type { ContentKind, ContentRecords } from './records.ts'

/** What an import did, or everything that kept it from being done. */
export type ImportOutcome = ImportReport | LineErrors

/**
 * Imports JSON Lines, all or nothing: nothing is written unless every line is right and what it refers to
 * exists. Industries may name parents that stand in the same lines, in any order.
 *
 * @param lines Without or with their line ends; a byte-order mark, CRLF and blank lines are tolerated.
 */
export async function importContent(
  store: Pick<Store, 'importContent' | 'listIndustries' | 'listPartners'>,
  kind: ContentKind,
  lines: Iterable<string> | AsyncIterable<string>,
  options: ImportOptions,
): Promise<ImportOutcome> {
  const reader = createLineReader(kind, await gatherReferences(store, kind))

  // Passed on as they are read, so that no more of them are held than the store needs.
  async function* records(): AsyncGenerator<ContentRecords[ContentKind]> {
    for await (const line of lines) {
      reader.read(line)
      yield* reader.take()
    }
    const read = reader.finish()
    if ('errors' in read) throw new RefusedLines(read)
    yield* read.records
  }

  try {
    return await store.importContent(kind, records(), options)
  } catch (error) {
    if (error instanceof RefusedLines) return error.lines
    throw error
  }
}

/** Ends the records of an import whose lines are wrong. */
class RefusedLines extends Error {
  readonly lines: LineErrors

  constructor(lines: LineErrors) {
    super('Lines are wrong.')
    this.lines = lines
  }
}

async function gatherReferences(
  store: Pick<Store, 'listIndustries' | 'listPartners'>,
  kind: ContentKind,
): Promise<References> {
  if (kind === 'plans') return {}
  if (kind === 'banners') return { partners: await partnerSlugs(store) }
  const industries = new Map((await store.listIndustries()).map(({ slug, parentSlug }) => [slug, parentSlug]))
  return kind === 'industries' ? { industries } : { industries, partners: await partnerSlugs(store) }
}

async function partnerSlugs(store: Pick<Store, 'listPartners'>): Promise<ReadonlySet<string>> {
  const slugs = new Set<string>()
  const partners = readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit))
  for await (const { slug } of partners) slugs.add(slug)
  return slugs
}

import { formatValue } from '../http/redact.ts'
import type { Partner } from '../model.ts'
import type { ContentKind, ContentRecords, ImportOptions, ImportReport } from '../ports/content.ts'
import { readPages, type Store } from '../ports/store.ts'
import { type References, toLine } from './fields.ts'
import { CONTENT_FORMATS } from './kinds.ts'
import { createObjectReader, type LineErrors } from './line-reader.ts'

/** The result of an import: its report, or the errors because of which nothing was written. */
export type ImportOutcome = ImportReport | LineErrors

/**
 * Imports JSON Lines, all or nothing: nothing is written unless every line is valid and everything that it refers to
 * exists. Industries may name parents from the same lines, in any order.
 *
 * @param lines With or without line ends; a byte-order mark, CRLF and blank lines are accepted.
 */
export async function importContent(
  store: Pick<Store, 'importContent' | 'listIndustries' | 'listPartners'>,
  kind: ContentKind,
  lines: Iterable<string> | AsyncIterable<string>,
  options: ImportOptions,
): Promise<ImportOutcome> {
  const reader = createLineReader(kind, await loadReferences(store, kind))
  let invalid: LineErrors | undefined
  const refusal = new Error('Lines are invalid.')

  // Passed on while they are read, so that memory holds no more of them than the store needs.
  async function* records(): AsyncGenerator<ContentRecords[ContentKind]> {
    for await (const line of lines) {
      const record = reader.read(line)
      if (record !== undefined) yield record
    }
    invalid = reader.finish()
    if (invalid !== undefined) throw refusal
  }

  try {
    return await store.importContent(kind, records(), options)
  } catch (error) {
    if (error === refusal) return invalid!
    throw error
  }
}

async function loadReferences(
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

/**
 * @param references What lines may refer to; by default anything.
 * @returns A reader that checks each line by itself, against the other lines and against `references`.
 */
export function createLineReader<K extends ContentKind>(kind: K, references: References = {}) {
  const idField = kind === 'banners' ? 'partner' : 'slug'
  const firstLines = new Map<string, number>()
  const parents: ParentReference[] = []
  const reader = createObjectReader<ContentRecords[K]>(CONTENT_FORMATS[kind], references, (value, line) => {
    const { [idField]: id, parent_slug: parent } = value
    if (typeof id !== 'string') return
    const first = firstLines.get(id)
    if (first !== undefined) {
      reader.addError(line, idField, `repeats ${formatValue(id)} of line ${first}`)
    } else {
      firstLines.set(id, line)
      if (kind === 'industries') {
        parents.push({ line, slug: id, parent: typeof parent === 'string' ? parent : undefined })
      }
    }
  })

  return {
    /**
     * Reads the next line, with or without its line end.
     * @returns Its record; `undefined` for a blank line, an invalid one, and all after that.
     */
    read(text: string): ContentRecords[K] | undefined {
      const record = reader.read(text)
      return reader.isValid() ? record : undefined
    },

    /** To be called after the last line. @returns All errors, if there are any. */
    finish(): LineErrors | undefined {
      for (const { line, reason } of findTreeErrors(parents, references.industries)) {
        reader.addError(line, 'parent_slug', reason)
      }
      return reader.errors()
    },
  }
}

/** A record as one line of JSON without a line end: section 8's fields in a fixed order, absent ones `null`. */
export function formatContentLine<K extends ContentKind>(kind: K, record: ContentRecords[K]): string {
  return JSON.stringify(toLine<ContentRecords[K]>(CONTENT_FORMATS[kind], record))
}

interface ParentReference {
  readonly line: number
  readonly slug: string
  readonly parent: string | undefined
}

/**
 * Finds parents that do not exist, and cycles, in the tree of industries after an import.
 *
 * @param stored The industries that exist, each with its parent; when `undefined`, any parent counts as existing.
 */
function findTreeErrors(
  references: readonly ParentReference[],
  stored: ReadonlyMap<string, string | undefined> | undefined,
): { readonly line: number; readonly reason: string }[] {
  const parents = new Map(stored)
  for (const { slug, parent } of references) parents.set(slug, parent)
  const cycles = findCycles(references, parents)
  return references.flatMap(({ line, slug, parent }) => {
    const cycle = cycles.get(slug)
    if (cycle !== undefined) return [{ line, reason: `must not make a circle: ${cycle}` }]
    if (stored === undefined || parent === undefined || parents.has(parent)) return []
    return [{
      line,
      reason: `must be an industry that exists or is in this file, not ${formatValue(parent)}`,
    }]
  })
}

/** The cycle that each industry is part of, formatted. Visits every industry once. */
function findCycles(
  references: readonly ParentReference[],
  parents: ReadonlyMap<string, string | undefined>,
): ReadonlyMap<string, string> {
  const cycles = new Map<string, string>()
  const seen = new Set<string>()
  for (const reference of references) {
    const path: string[] = []
    let slug: string | undefined = reference.slug
    while (slug !== undefined && !seen.has(slug)) {
      seen.add(slug)
      path.push(slug)
      slug = parents.get(slug)
    }
    const cycle = slug === undefined || !path.includes(slug) ? [] : path.slice(path.indexOf(slug))
    const shown = cycle.length > 5 ? [...cycle.slice(0, 4), '…'] : cycle
    for (const member of cycle) cycles.set(member, [...shown, cycle[0]].join(' → '))
  }
  return cycles
}

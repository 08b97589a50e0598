import { formatValue } from '../http/redact.ts'
import type { Partner } from '../model.ts'
import type { ContentKind, ContentRecords, ImportOptions, ImportReport } from '../ports/content.ts'
import { readPages, type Store } from '../ports/store.ts'
import { LINE_FORMATS, type LineFormat } from './kinds.ts'
import type { LineErrors, References } from './line-declarations.ts'
import { createObjectReader } from './line-reader.ts'

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
      reader.read(line)
      yield* reader.take()
    }
    const read = reader.finish()
    if ('errors' in read) {
      invalid = read
      throw refusal
    }
    yield* read.records
  }

  try {
    return await store.importContent(kind, records(), options)
  } catch (error) {
    if (error === refusal && invalid !== undefined) return invalid
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
  let records: ContentRecords[K][] = []
  const reader = createObjectReader(LINE_FORMATS[kind](references).schema, (value, line) => {
    checkUnique(value[idField], line)
    recordParent(value, line)
  })

  function checkUnique(id: unknown, line: number): void {
    if (typeof id !== 'string') return
    const first = firstLines.get(id)
    if (first === undefined) firstLines.set(id, line)
    else reader.addError(line, idField, `repeats ${formatValue(id)} of line ${first}`)
  }

  function recordParent(
    { slug, parent_slug: parent }: Readonly<Record<string, unknown>>,
    line: number,
  ): void {
    if (kind !== 'industries' || typeof slug !== 'string' || firstLines.get(slug) !== line) return
    parents.push({ line, slug, parent: typeof parent === 'string' ? parent : undefined })
  }

  /** Returns the records since the last call; none once a line is invalid. */
  function take(): readonly ContentRecords[K][] {
    const taken = reader.isValid() ? records : []
    if (records.length > 0) records = []
    return taken
  }

  return {
    /** Reads the next line, with or without its line end. */
    read(text: string): void {
      const record = reader.read(text)
      if (record !== undefined) records.push(record)
    },

    take,

    /** Returns the remaining records, or all errors. */
    finish(): { readonly records: readonly ContentRecords[K][] } | LineErrors {
      for (const { line, reason } of findTreeErrors(parents, references.industries)) {
        reader.addError(line, 'parent_slug', reason)
      }
      return reader.errors() ?? { records: take() }
    },
  }
}

const exportFormats = new Map<ContentKind, LineFormat<never>>()

/** A record as one line of JSON without a line end: section 8's fields in a fixed order, absent ones `null`. */
export function formatContentLine<K extends ContentKind>(kind: K, record: ContentRecords[K]): string {
  let format = exportFormats.get(kind)
  if (format === undefined) exportFormats.set(kind, format = LINE_FORMATS[kind]({}) as LineFormat<never>)
  return JSON.stringify(format.toLine(record as never))
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

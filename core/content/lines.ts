import { formatValue } from '../http/redact.ts'
import { assertInteger, assertKind, assertOptions, assertStore } from '../lib/options.ts'
import type { ContentKind, ContentRecords, ImportOptions, ImportReport } from '../ports/content.ts'
import { readPartners, type Store } from '../ports/store.ts'
import { toLine } from './fields.ts'
import { CONTENT_FIELDS, createLineSchemas, type References } from './kinds.ts'
import { assertLines, createObjectReader, type LineErrors } from './line-reader.ts'

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
  assertOptions('importContent', options, {
    now: 'a number',
    actor: 'a text',
    dryRun: 'true or false',
    progress: 'a function',
  })
  assertStore('importContent', store)
  assertInteger('importContent: now', options.now, 0, Number.MAX_SAFE_INTEGER)
  assertKind('importContent: actor', options.actor, 'a text')
  assertLines('importContent', lines)
  if (!Object.hasOwn(CONTENT_FIELDS, kind)) {
    const kinds = Object.keys(CONTENT_FIELDS).join(', ')
    throw new TypeError(`importContent: the kind must be one of ${kinds}, not ${formatValue(kind)}.`)
  }
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
  for await (const { slug } of readPartners(store)) slugs.add(slug)
  return slugs
}

/**
 * @param references What lines may refer to; by default anything.
 * @returns A reader that checks each line by itself, against the other lines and against `references`.
 */
export function createLineReader<K extends ContentKind>(kind: K, references: References = {}) {
  const idField = kind === 'banners' ? 'partner' : 'slug'
  const firstLines = new Map<string, number>()
  const parents = new Map<string, string | undefined>()
  const reader = createObjectReader<ContentRecords[K]>(createLineSchemas(references)[kind], (value, line) => {
    const { [idField]: id, parent_slug: parent } = value
    if (typeof id !== 'string') return
    const first = firstLines.get(id)
    if (first !== undefined) {
      reader.addError(line, idField, `repeats ${formatValue(id)} of line ${first}`)
    } else {
      firstLines.set(id, line)
      if (kind === 'industries') parents.set(id, typeof parent === 'string' ? parent : undefined)
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

    /** Ends the file, after its last line. @returns All errors, if there are any. */
    finish(): LineErrors | undefined {
      for (const [slug, reason] of findTreeErrors(parents, references.industries)) {
        reader.addError(firstLines.get(slug)!, 'parent_slug', reason)
      }
      return reader.errors()
    },
  }
}

/** A record as one line of JSON without a line end: section 8's fields in a fixed order, absent ones `null`. */
export function formatContentLine<K extends ContentKind>(kind: K, record: ContentRecords[K]): string {
  return JSON.stringify(toLine<ContentRecords[K]>(CONTENT_FIELDS[kind], record))
}

/**
 * Finds parents that do not exist, and cycles, in the tree of industries after an import.
 *
 * @param added The industries of the import, each with its parent.
 * @param stored The industries that exist; when `undefined`, any parent counts as existing.
 */
function* findTreeErrors(
  added: ReadonlyMap<string, string | undefined>,
  stored: References['industries'],
): Generator<readonly [slug: string, reason: string]> {
  const parents = new Map([...stored ?? [], ...added])
  const cycles = findCycles(added.keys(), parents)
  for (const [slug, parent] of added) {
    const cycle = cycles.get(slug)
    if (cycle !== undefined) yield [slug, `must not make a circle: ${cycle}`]
    else if (stored !== undefined && parent !== undefined && !parents.has(parent)) {
      yield [slug, `must be an industry that exists or is in this file, not ${formatValue(parent)}`]
    }
  }
}

/** The cycle that each industry is part of, formatted. Visits every industry once. */
function findCycles(
  slugs: Iterable<string>,
  parents: ReadonlyMap<string, string | undefined>,
): ReadonlyMap<string, string> {
  const cycles = new Map<string, string>()
  const seen = new Set<string>()
  for (const start of slugs) {
    const path: string[] = []
    let slug: string | undefined = start
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

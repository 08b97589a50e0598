import * as v from 'valibot'
import { containsKey, formatValue } from '../http/redact.ts'
import { hasDuplicateMembers } from '../lib/json.ts'
import { readPages } from '../lib/read-pages.ts'
import type { Partner } from '../model.ts'
import type { ContentKind, ContentRecords, ImportOptions, ImportReport } from '../ports/content.ts'
import type { Store } from '../ports/store.ts'
import { isRecord, type References } from './fields.ts'
import {
  bannerFields,
  bannerSchema,
  industryFields,
  industrySchema,
  planFields,
  planSchema,
  profileFields,
  profileSchema,
} from './kinds.ts'

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
  const reader = createLineReader(kind, await loadReferences(store, kind))

  // Passed on as they are read, so that no more of them are held than the store needs.
  async function* records(): AsyncGenerator<ContentRecords[ContentKind]> {
    for await (const line of lines) {
      reader.read(line)
      yield* reader.take()
    }
    const read = reader.finish()
    if ('errors' in read) throw new InvalidLinesError(read)
    yield* read.records
  }

  try {
    return await store.importContent(kind, records(), options)
  } catch (error) {
    if (error instanceof InvalidLinesError) return error.lines
    throw error
  }
}

/** Ends the records of an import whose lines are wrong. */
class InvalidLinesError extends Error {
  readonly lines: LineErrors

  constructor(lines: LineErrors) {
    super('Lines are wrong.')
    this.lines = lines
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

/** Content as JSON Lines: one object a line, UTF-8. */

/** What is wrong with one field of one line. */
export interface LineError {
  /** From 1, blank lines counted. */
  readonly line: number
  /** The field, as in `links[0].url`; `null` when it is the line as a whole. */
  readonly field: string | null
  /** One clause about the field or line, such as `must be a whole number from 0, not "ten"`. */
  readonly reason: string
}

/** Why lines are not taken. */
export interface LineErrors {
  /** At most 1,000, by line. */
  readonly errors: readonly LineError[]
  /** How many there are in all, 1 or more. */
  readonly errorCount: number
}

/** Lines that are all right. */
export interface LineRecords<K extends ContentKind> {
  readonly records: readonly ContentRecords[K][]
}

/** Reads content line by line. */
export interface LineReader<K extends ContentKind> {
  /** Takes the next line, with or without its line end. */
  read(line: string): void
  /** The records that were read since the last call; none once a line is wrong. */
  take(): readonly ContentRecords[K][]
  /** The records that were not taken, or everything that is wrong with the lines. */
  finish(): LineRecords<K> | LineErrors
}

const maxErrors = 1_000

type LineSchemas = {
  [K in ContentKind]: (references: References) => v.GenericSchema<unknown, ContentRecords[K]>
}

const lineSchemas: LineSchemas = {
  profiles: profileSchema,
  banners: bannerSchema,
  industries: industrySchema,
  plans: planSchema,
}

const exportFields: { [K in ContentKind]: (record: ContentRecords[K]) => unknown } = {
  profiles: profileFields,
  banners: bannerFields,
  industries: industryFields,
  plans: planFields,
}

/**
 * Reads JSON Lines and judges every line by itself, its place among the others and what it refers to. Blank lines are
 * passed over, a byte-order mark before the first line and CRLF line ends are tolerated.
 *
 * @param references What lines may refer to; by default anything.
 */
export function createLineReader<K extends ContentKind>(kind: K, references: References = {}): LineReader<K> {
  const schema = lineSchemas[kind](references)
  const idField = kind === 'banners' ? 'partner' : 'slug'
  const firstLines = new Map<string, number>()
  let records: ContentRecords[K][] = []
  const parentReferences: ParentReference[] = []
  const errors: LineError[] = []
  let errorCount = 0
  let line = 0

  function addError(error: LineError): void {
    errorCount++
    if (errors.length < maxErrors) errors.push(error)
  }

  function recordId(value: Readonly<Record<string, unknown>>): void {
    const slug = value[idField]
    if (typeof slug !== 'string') return
    const first = firstLines.get(slug)
    if (first !== undefined) {
      return addError({ line, field: idField, reason: `repeats ${formatValue(slug)} of line ${first}` })
    }
    firstLines.set(slug, line)
    const parent = value['parent_slug']
    if (kind === 'industries') {
      parentReferences.push({ line, slug, parent: typeof parent === 'string' ? parent : undefined })
    }
  }

  return {
    read(text) {
      line++
      // Editors on Windows write a byte-order mark; JSON itself allows none (RFC 8259 §8.1).
      const json = line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
      if (/^[ \t\r\n]*$/.test(json)) return
      const value = tryParseJson(json)
      if (!isRecord(value)) {
        return addError({
          line,
          field: null,
          reason: value === undefined ? 'is not JSON' : 'must be a JSON object',
        })
      }
      if (hasDuplicateMembers(json)) {
        return addError({ line, field: null, reason: 'has two members of one name in an object' })
      }
      recordId(value)
      const result = v.safeParse(schema, value)
      if (result.success) records.push(result.output)
      for (const { path, message } of result.issues ?? []) {
        addError({ line, field: fieldPath(path), reason: message })
      }
    },

    take() {
      const taken = errorCount === 0 ? records : []
      if (records.length > 0) records = []
      return taken
    },

    finish() {
      for (const error of findTreeErrors(parentReferences, references.industries)) addError(error)
      return errorCount === 0 ? { records } : { errors: errors.sort((a, b) => a.line - b.line), errorCount }
    },
  }
}

/** A record as one line of JSON without a line end: section 8's fields in a fixed order, absent ones `null`. */
export function formatContentLine<K extends ContentKind>(kind: K, record: ContentRecords[K]): string {
  return JSON.stringify(exportFields[kind](record))
}

/** The parser's own message is not passed on: it quotes what it read. */
function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function fieldPath(path: readonly { readonly key: unknown }[] | undefined): string | null {
  if (path === undefined) return null
  const steps = path.map(({ key }) => typeof key === 'number' ? `[${key}]` : `.${fieldName(String(key))}`)
  return steps.join('').replace(/^\./, '')
}

/** A name that the line's author made up is shown like any value that arrived. */
function fieldName(name: string): string {
  if (containsKey(name)) return '(a name in the shape of a key)'
  return /^\w{1,60}$/.test(name) ? name : formatValue(name)
}

/** What a line says of an industry's place. */
export interface ParentReference {
  readonly line: number
  readonly slug: string
  readonly parent: string | undefined
}

/**
 * What is wrong with the tree of industries once these lines stand: parents that do not exist, and circles.
 *
 * @param stored The industries that exist, each with its parent; `undefined` when not known, and then a
 * parent that no line has is taken to exist.
 */
export function findTreeErrors(
  references: readonly ParentReference[],
  stored: ReadonlyMap<string, string | undefined> | undefined,
): LineError[] {
  const parents = new Map(stored)
  for (const { slug, parent } of references) parents.set(slug, parent)
  const cycles = findCycles(references, parents)
  return references.flatMap(({ line, slug, parent }) => {
    const cycle = cycles.get(slug)
    const reason = cycle !== undefined
      ? `must not make a circle: ${cycle}`
      : stored === undefined || parent === undefined || parents.has(parent)
      ? undefined
      : `must be an industry that exists or stands in this file, not ${formatValue(parent)}`
    return reason === undefined ? [] : [{ line, field: 'parent_slug', reason }]
  })
}

/** The circle that each industry is part of, in words. Looks at every industry once. */
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
    const words = cycle.length > 5 ? [...cycle.slice(0, 4), '…'] : cycle
    for (const member of cycle) cycles.set(member, [...words, cycle[0]].join(' → '))
  }
  return cycles
}

import type { ContentKind, ContentRecords } from '../../../../core/content/records.ts'
import { RECORD_FORMATS } from '../../record-text.ts'
import { StoreError } from '../../store-error.ts'
import type { Database, Row } from '../connection/database.ts'
import { PROFILE_COLUMNS, type ProfileRow, readProfile } from './profile-shelf.ts'

/** Rows that are read at once. */
const pageRows = 1000

/** How the records of a kind are read: rows begin with their slug. */
interface Source<R> {
  readonly columns: string | readonly string[]
  readonly table: string
  readonly primary: string
  read(row: Row): R
}

const sources: { readonly [K in ContentKind]: Source<ContentRecords[K]> } = {
  profiles: {
    columns: PROFILE_COLUMNS,
    table: 'profile',
    primary: 'slug',
    read: (row) => readProfile(row as unknown as ProfileRow),
  },
  industries: {
    columns: 'slug, name, parent_slug',
    table: 'industry',
    primary: 'slug',
    read(row) {
      const [slug, name, parentSlug] = row as [string, string, string | null]
      return { slug, name, parentSlug: parentSlug ?? undefined }
    },
  },
  plans: {
    columns: 'slug, record',
    table: 'plan',
    primary: 'slug',
    read: ([, text]) => RECORD_FORMATS.plans.read(text as string),
  },
  banners: {
    columns: 'partner, record',
    table: 'banner',
    primary: 'partner',
    read: ([, text]) => RECORD_FORMATS.banners.read(text as string),
  },
}

/**
 * All records of a kind, by slug, as they are when the first one is read. No more of them are held than two pages,
 * and the transaction that reads them lasts until the last one is taken or no more are wanted.
 */
export async function* exportRecords<K extends ContentKind>(
  database: Database,
  kind: K,
): AsyncGenerator<ContentRecords[K], void, undefined> {
  const { columns, table, primary, read } = sources[kind]
  const select = `
    SELECT ${columns} FROM partner_api.${table} WHERE ${primary} > $1 ORDER BY ${primary} LIMIT ${pageRows}`
  const { readable, writable } = new TransformStream<Row[], Row[]>()
  const pages = writable.getWriter()
  let begun = false

  const reading = database.transaction(async (query) => {
    if (begun) {
      const message = `The store ${database.place} was lost while all of its ${kind} were read: try again.`
      throw new StoreError('unreachable', message)
    }
    for (let after = '', last = false; !last;) {
      const rows = await query<Row>(select, [after])
      last = rows.length < pageRows
      after = String(rows.at(-1)?.[0] ?? '')
      begun = true
      await pages.write(rows)
    }
  }, { readOnly: true }).then(() => pages.close(), (error) => pages.abort(error))
  // Whatever went wrong is told to who takes the pages.
  reading.catch(() => undefined)

  for await (const rows of readable) {
    for (const row of rows) yield read(row)
  }
}

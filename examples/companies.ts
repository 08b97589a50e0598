// A directory over existing tables: the companies and sectors in the database of a shop.
import { DatabaseSync } from 'node:sqlite'
import { type Directory, fold, foldWords } from 'partner-api'

/** A company with its sector, as the tables have it. */
interface Row {
  readonly handle: string
  readonly title: string
  readonly tagline: string
  readonly country: string
  readonly code: string
  readonly label: string
  readonly logo: string | null
  readonly live_since: number
  readonly changed_at: number
  readonly about: string | null
  readonly homepage: string | null
  readonly city: string | null
  readonly keywords: string
  readonly mail: string | null
}

export function openCompanies(file: string): Directory {
  const database = new DatabaseSync(file, { readOnly: true })
  database.function('folded', { deterministic: true }, (text) => fold(String(text)))
  database.function('words', { deterministic: true }, (text) => ` ${foldWords(String(text)).join(' ')}`)

  const ask = <R = Row>(sql: string, values: Record<string, string | number | null> = {}) =>
    database.prepare(sql).all(values) as unknown as R[]
  const live = 'FROM company JOIN sector ON sector.id = company.sector_id WHERE company.live_since <= :now'
  const orders = {
    name: { key: 'folded(company.title)', direction: 'ASC', beyond: '>' },
    '-published_at': { key: 'company.live_since', direction: 'DESC', beyond: '<' },
  }

  return {
    listProfiles(_partner, { words, countries, industries, sort, after, limit }, now) {
      const { key, direction, beyond } = orders[sort]
      const rows = ask(
        `SELECT company.*, sector.code, sector.label ${live}
           AND (:countries = '[]' OR country IN (SELECT value FROM json_each(:countries)))
           AND (:sectors = '[]' OR code IN (SELECT value FROM json_each(:sectors)))
           AND NOT EXISTS (
             SELECT 1 FROM json_each(:words)
             WHERE instr(words(title || ' ' || tagline || ' ' || coalesce(about, '') || ' ' || keywords), ' ' || value) = 0
           )
           AND (:slug IS NULL OR ${key} ${beyond} :key OR ${key} = :key AND handle > :slug)
         ORDER BY ${key} ${direction}, handle LIMIT :limit`,
        {
          now,
          limit,
          words: JSON.stringify(words),
          countries: JSON.stringify(countries),
          sectors: JSON.stringify(industries),
          key: after?.key ?? null,
          slug: after?.slug ?? null,
        },
      )
      return rows.map(profileOf)
    },

    findProfile(_partner, slug, now) {
      const [row] = ask(`SELECT company.*, sector.code, sector.label ${live} AND handle = :slug`, {
        now,
        slug,
      })
      return row && profileOf(row)
    },

    countProfiles(_partner, by, now) {
      const column = by === 'country' ? 'country' : 'code'
      const rows = ask<{ name: string; count: number }>(
        `SELECT ${column} AS name, count(*) AS count ${live} GROUP BY ${column}`,
        { now },
      )
      return new Map(rows.map(({ name, count }) => [name, count]))
    },

    listIndustries: () =>
      ask<Pick<Row, 'code' | 'label'>>('SELECT code, label FROM sector').map(({ code, label }) => ({
        slug: code,
        name: label,
        parentSlug: undefined,
      })),

    nextProfileChangeAt(_partner, now) {
      const sql = 'SELECT min(live_since) AS next FROM company WHERE live_since > :now'
      return ask<{ next: number | null }>(sql, { now })[0]?.next ?? undefined
    },

    // Changes with every commit of another connection, not with those of this one, which only reads. Without it, every
    // request queries the tables.
    directoryRevision: () => String(ask<{ data_version: number }>('PRAGMA data_version')[0]?.data_version),
  }
}

function profileOf(row: Row) {
  return {
    slug: row.handle,
    name: row.title,
    headline: row.tagline,
    country: row.country,
    industry: { slug: row.code, name: row.label },
    logoUrl: row.logo ?? undefined,
    publishedAt: row.live_since,
    updatedAt: row.changed_at,
    description: row.about ?? undefined,
    websiteUrl: row.homepage ?? undefined,
    city: row.city ?? undefined,
    foundedYear: undefined,
    employees: undefined,
    tags: row.keywords === '' ? [] : row.keywords.split(','),
    contact: row.mail === null ? undefined : { email: row.mail, phone: undefined },
    links: [],
  }
}

// A directory over tables of Drizzle: partners see the companies of the site.
import { and, count, desc, eq, gt, inArray, lt, lte, min, or, sql } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { type Directory, fold, foldWords } from 'partner-api'
import { companies, sectors } from './schema.ts'

/** Makes the columns for order and search: set them whenever you write a company. */
export function searchColumns({ title, tagline, about, keywords }: {
  readonly title: string
  readonly tagline: string
  readonly about: string | null
  readonly keywords: readonly string[]
}) {
  const words = foldWords([title, tagline, about ?? '', ...keywords].join(' '))
  return { titleKey: fold(title), words: ` ${words.join(' ')}` }
}

// The service sorts by code points; the database may sort by a language.
const titleKey = sql<string>`${companies.titleKey} COLLATE "C"`
const handle = sql<string>`${companies.handle} COLLATE "C"`

/** Without `directoryRevision`, every request queries the tables: changes show at once, and no response is cached. */
export function createCompanies(db: PostgresJsDatabase): Directory {
  const isLive = (now: number) => lte(companies.liveSince, new Date(now))
  const read = () => db.select().from(companies).innerJoin(sectors, eq(sectors.code, companies.sector))

  return {
    async listProfiles(_partner, { words, countries, industries, sort, after, limit }, now) {
      const rows = await read()
        .where(and(
          isLive(now),
          countries.length > 0 ? inArray(companies.country, [...countries]) : undefined,
          industries.length > 0 ? inArray(companies.sector, [...industries]) : undefined,
          ...words.map((word) => sql`position(${` ${word}`} in ${companies.words}) > 0`),
          after && (sort === 'name' ? isAfterName(after.key, after.slug) : isBefore(after.key, after.slug)),
        ))
        .orderBy(sort === 'name' ? titleKey : desc(companies.liveSince), handle)
        .limit(limit)
      return rows.map(toProfile)
    },

    async findProfile(_partner, slug, now) {
      const [row] = await read().where(and(isLive(now), eq(companies.handle, slug)))
      return row && toProfile(row)
    },

    async countProfiles(_partner, by, now) {
      const name = by === 'country' ? companies.country : companies.sector
      const rows = await db.select({ name, count: count() }).from(companies).where(isLive(now)).groupBy(name)
      return new Map(rows.map((row) => [row.name, row.count]))
    },

    async listIndustries() {
      const rows = await db.select().from(sectors)
      return rows.map(({ code, label }) => ({ slug: code, name: label, parentSlug: undefined }))
    },

    async nextProfileChangeAt(_partner, now) {
      const [row] = await db.select({ next: min(companies.liveSince) }).from(companies)
        .where(gt(companies.liveSince, new Date(now)))
      return row?.next?.getTime()
    },
  }
}

function isAfterName(key: string | number, slug: string) {
  return sql`(${titleKey}, ${handle}) > (${key}, ${slug})`
}

function isBefore(key: string | number, slug: string) {
  const instant = new Date(key)
  // The first condition lets the database begin at the right place of its index.
  return and(lte(companies.liveSince, instant), or(lt(companies.liveSince, instant), gt(handle, slug)))
}

function toProfile({ companies: company, sectors: sector }: {
  readonly companies: typeof companies.$inferSelect
  readonly sectors: typeof sectors.$inferSelect
}) {
  return {
    slug: company.handle,
    name: company.title,
    headline: company.tagline,
    country: company.country,
    industry: { slug: sector.code, name: sector.label },
    logoUrl: company.logo ?? undefined,
    publishedAt: company.liveSince.getTime(),
    updatedAt: company.changedAt.getTime(),
    description: company.about ?? undefined,
    websiteUrl: company.homepage ?? undefined,
    city: undefined,
    foundedYear: undefined,
    employees: undefined,
    tags: company.keywords,
    contact: undefined,
    links: [],
  }
}

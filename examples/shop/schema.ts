// The tables of the site, in the schema `public`. The service keeps its own in the schema `partner_api`.
import { sql } from 'drizzle-orm'
import { index, pgTable, text, timestamp } from 'drizzle-orm/pg-core'

export const sectors = pgTable('sectors', {
  code: text().primaryKey(),
  label: text().notNull(),
})

// The service knows instants in milliseconds.
const instant = (name: string) => timestamp(name, { precision: 3, withTimezone: true }).notNull().defaultNow()

export const companies = pgTable('companies', {
  handle: text().primaryKey(),
  title: text().notNull(),
  tagline: text().notNull(),
  country: text().notNull(),
  sector: text().notNull().references(() => sectors.code),
  keywords: text().array().notNull().default([]),
  about: text(),
  logo: text(),
  homepage: text(),
  liveSince: instant('live_since'),
  changedAt: instant('changed_at'),
  // For order and search: `searchColumns` of companies.ts makes them.
  titleKey: text('title_key').notNull(),
  words: text().notNull(),
}, (table) => [
  index('companies_by_title').on(sql`${table.titleKey} COLLATE "C"`, sql`${table.handle} COLLATE "C"`),
  index('companies_by_time').on(table.liveSince.desc().nullsFirst(), sql`${table.handle} COLLATE "C"`),
])

export const orders = pgTable('orders', {
  id: text().primaryKey(),
  partner: text().notNull(),
  item: text().notNull(),
}, (table) => [index('orders_by_partner').on(table.partner, table.id)])

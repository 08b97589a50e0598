import * as v from 'valibot'
import { formatValue } from '../http/redact.ts'
import type { Industry, Plan, Profile } from '../model.ts'
import type { BannerRecord, ContentKind, ContentRecords, ProfileRecord } from '../ports/content.ts'
import {
  code,
  customCheck,
  email,
  type FieldOrder,
  instant,
  integer,
  list,
  mustBe,
  slug,
  strictFields,
  text,
  webUrl,
} from './fields.ts'
import type { References } from './line-declarations.ts'
import { isCountryCode, isCurrencyCode } from './iso-codes.ts'

/** How a record, or an object within one, is read from a line and written to one. */
export interface LineFormat<R> {
  readonly schema: v.GenericSchema<unknown, R>
  /** The fields in the order of an export, absent ones `null`. */
  toLine(record: R): Readonly<Record<string, unknown>>
}

/** One member of a record. Its field in the line has the same name in snake case. */
interface Field<T> {
  readonly schema: v.GenericSchema<unknown, T | null | undefined>
  /** The member's value when the line lacks the field or has `null`. */
  readonly absent?: T
  toLine?(value: NonNullable<T>): unknown
}

function lineFormat<R extends object>(
  fields: { readonly [Member in keyof R]-?: Field<R[Member]> },
  order?: FieldOrder,
): LineFormat<R> {
  const members = Object.entries<Field<unknown>>(fields).map(([member, field]) => ({
    ...field,
    member,
    name: member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  }))
  return {
    schema: v.pipe(
      strictFields(Object.fromEntries(members.map(({ name, schema }) => [name, schema])), order),
      v.transform((line) =>
        Object.fromEntries(members.map(({ member, name, absent }) => [member, line[name] ?? absent])) as R
      ),
    ),
    toLine: (record) =>
      Object.fromEntries(members.map(({ member, name, toLine }) => {
        const value = record[member as keyof R] ?? null
        return [name, value === null || toLine === undefined ? value : toLine(value)]
      })),
  }
}

function optional<T>(schema: v.GenericSchema<unknown, T>): Field<T | undefined> {
  return { schema: v.nullish(schema) }
}

function optionalObject<R extends object>({ schema, toLine }: LineFormat<R>): Field<R | undefined> {
  return { schema: v.nullish(schema), toLine }
}

const toInstant = (value: number): string => new Date(value).toISOString()

function profileFormat(references: References): LineFormat<ProfileRecord> {
  const { industries } = references
  return lineFormat<ProfileRecord>({
    slug: {
      schema: slug((value) =>
        value === 'recent' ? 'must not be "recent", the path of the newest profiles' : undefined
      ),
    },
    name: { schema: text(200) },
    headline: { schema: text(300) },
    country: { schema: code(isCountryCode, 'an ISO 3166-1 alpha-2 code or XK, in upper case') },
    industry: {
      schema: slug((value) =>
        industries === undefined || industries.has(value)
          ? undefined
          : `must be an industry that exists, not ${formatValue(value)}`
      ),
    },
    publishedAt: { schema: v.nullable(instant()), toLine: toInstant },
    logoUrl: optional(webUrl()),
    description: optional(text(5_000)),
    websiteUrl: optional(webUrl()),
    city: optional(text(200)),
    foundedYear: optional(integer(1, 9_999)),
    employees: optionalObject(
      lineFormat<NonNullable<Profile['employees']>>(
        { min: optional(integer(0)), max: optional(integer(0)) },
        ['max', 'at least', 'min'],
      ),
    ),
    tags: { schema: v.nullish(list(text(50), 20)), absent: [] },
    contact: optionalObject(
      lineFormat<NonNullable<Profile['contact']>>({ email: optional(email()), phone: optional(text(50)) }),
    ),
    links: { schema: v.nullish(list(linkFormat.schema, 20)), absent: [] },
    visibleTo: optional(partnerSlugs(references)),
  })
}

const linkFormat = lineFormat<Profile['links'][number]>({
  rel: { schema: text(50) },
  url: { schema: webUrl() },
})

function industryFormat(): LineFormat<Industry> {
  // Whether the parent exists is known only after the last line.
  return lineFormat<Industry>({
    slug: { schema: slug() },
    name: { schema: text(200) },
    parentSlug: optional(slug()),
  })
}

function planFormat(): LineFormat<Plan> {
  const price = lineFormat<Plan['price']>({
    amountMinor: { schema: integer(0) },
    currency: { schema: code(isCurrencyCode, 'the ISO 4217 code of a current currency, in upper case') },
  })
  return lineFormat<Plan>({
    slug: { schema: slug() },
    name: { schema: text(200) },
    description: { schema: text(5_000) },
    price,
    interval: { schema: v.picklist(['month', 'year', 'once'], mustBe('month, year or once')) },
    features: { schema: list(text(200), 50) },
    highlighted: { schema: v.nullish(v.boolean(mustBe('true or false'))), absent: false },
    position: optional(integer()),
  })
}

function bannerFormat(references: References): LineFormat<BannerRecord> {
  return lineFormat<BannerRecord>({
    partner: { schema: partnerSlug(references) },
    title: { schema: text(200) },
    body: optional(text(5_000)),
    imageUrl: optional(webUrl()),
    imageAlt: optional(text(500)),
    linkUrl: optional(webUrl()),
    linkLabel: optional(text(200)),
    startsAt: { schema: v.nullish(instant()), toLine: toInstant },
    endsAt: { schema: v.nullish(instant()), toLine: toInstant },
  }, ['ends_at', 'after', 'starts_at'])
}

/** Removed partners count as existing: their slugs stay taken, and exports contain them. */
function partnerSlug({ partners }: References): v.GenericSchema<unknown, string> {
  return slug((value) =>
    partners === undefined || partners.has(value)
      ? undefined
      : `must be a partner that exists, not ${formatValue(value)}`
  )
}

function partnerSlugs(references: References): v.GenericSchema<unknown, string[]> {
  return v.pipe(
    v.array(partnerSlug(references), mustBe('a list of partner slugs or null')),
    customCheck((slugs: string[]) => {
      const seen = new Set<string>()
      const repeated = slugs.find((value) => seen.size === seen.add(value).size)
      return repeated === undefined ? undefined : `must not name ${formatValue(repeated)} twice`
    }),
  )
}

/** The line format of each kind of content, for lines that may refer to `references`. */
export const LINE_FORMATS: {
  readonly [K in ContentKind]: (references: References) => LineFormat<ContentRecords[K]>
} = { profiles: profileFormat, banners: bannerFormat, industries: industryFormat, plans: planFormat }

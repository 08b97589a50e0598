/** Readers of the values that a custom port returns. Not valibot: reading each row with it is several times slower. */
import { formatValue } from '../http/redact.ts'
import { isObject } from '../lib/json.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import type { Industry, Profile, ProfileCard } from '../model.ts'
import { isCountryCode } from './iso-codes.ts'

/** @returns The value, converted from the usual forms of drivers. @throws {Error} whose message begins with `name`. */
export type Reader<T> = (value: unknown, name: string) => T

/** @param convert Returns `undefined` for an invalid value. */
const reader =
  <T>(expected: string, convert: (value: unknown) => T | undefined): Reader<T> => (value, name) => {
    const converted = convert(value)
    if (converted !== undefined) return converted
    throw new Error(`${name} must be ${expected}, not ${formatValue(value)}`)
  }

const string = (expected: string, isValid: (text: string) => boolean): Reader<string> =>
  reader(expected, (value) => typeof value === 'string' && isValid(value) ? value : undefined)

export const text: Reader<string> = string('text', (value) => value !== '')
const slug = string('a slug', (value) => SLUG_PATTERN.test(value))
const country = string('an ISO 3166-1 alpha-2 code or XK, in upper case', isCountryCode)

/** Drivers return an integer of 64 bits, such as a count, as a bigint or as text. */
export const integer = (expected: string, min = -Infinity, max = Infinity): Reader<number> =>
  reader(expected, (value) => {
    const isConverted = typeof value === 'bigint' || typeof value === 'string' && /^-?\d{1,16}$/.test(value)
    const number = isConverted ? Number(value) : value
    return Number.isSafeInteger(number) && Number(number) >= min && Number(number) <= max
      ? Number(number)
      : undefined
  })

/** In the years 0–9999, as RFC 3339 writes them. */
export const instant: Reader<number> = integer(
  'whole milliseconds since the epoch',
  -62_167_219_200_000,
  253_402_300_799_999,
)

/** The number of a version is one, too. */
export const revision: Reader<string> = reader(
  'text or a number',
  (value) =>
    typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value)
      ? String(value)
      : undefined,
)

/** Databases return `null` for an absent value. */
export const optional = <T>(read: Reader<T>): Reader<T | undefined> => (value, name) =>
  value == null ? undefined : read(value, name)

const listOf = <T>(read: Reader<T>): Reader<readonly T[]> => (value, name) => {
  if (value == null) return []
  if (!Array.isArray(value)) throw new Error(`${name} must be a list, not ${formatValue(value)}`)
  return Array.from(value, (item, index) => read(item, `${name}[${index}]`))
}

type Members<T> = { readonly [Name in keyof T]-?: Reader<T[Name]> }

export const object = <T>(members: Members<T>): Reader<T> => {
  const entries = Object.entries<Reader<unknown>>(members)
  return (value, name) => {
    if (!isObject(value)) throw new Error(`${name} must be an object, not ${formatValue(value)}`)
    const found: Record<string, unknown> = {}
    const prefix = name === 'the row' ? '' : `${name}.`
    for (const [member, read] of entries) found[member] = read(value[member], prefix + member)
    return found as T
  }
}

const card: Members<ProfileCard> = {
  slug,
  name: text,
  headline: text,
  country,
  industry: object({ slug, name: text }),
  logoUrl: optional(text),
  publishedAt: instant,
  updatedAt: instant,
}
const anyInteger = integer('an integer')

export const readCard: Reader<ProfileCard> = object(card)
export const readProfile: Reader<Profile> = object<Profile>({
  ...card,
  description: optional(text),
  websiteUrl: optional(text),
  city: optional(text),
  foundedYear: optional(anyInteger),
  employees: optional(object({ min: optional(anyInteger), max: optional(anyInteger) })),
  tags: listOf(text),
  contact: optional(object({ email: optional(text), phone: optional(text) })),
  links: listOf(object({ rel: text, url: text })),
})
export const readIndustry: Reader<Industry> = object<Industry>({
  slug,
  name: text,
  parentSlug: optional(slug),
})

/** The values that fields are made of. Lines and rows of custom directories each have their own schemas of these. */
import type { PartError } from '../lib/schema-rules.ts'
import type { Schema } from './fields.ts'
import { isCountryCode } from './iso-codes.ts'

/** The form of every slug: 1–80 of `a-z 0-9 -`, a letter or digit first. */
export const SLUG_PATTERN: RegExp = /^[a-z0-9][a-z0-9-]{0,79}$/

/** What browsers accept in `input type=email` (HTML living standard §4.10.5.1.5). */
export const EMAIL_PATTERN: RegExp =
  /^[a-zA-Z0-9.!#$%&'*+\/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

/** Schemas of values by what they are. */
export interface Scalars {
  /** Text of 1 to `max` code points. */
  text(max: number): Schema<string>
  readonly url: Schema<string>
  readonly email: Schema<string>
  /** Text of one form, which messages call by a name. */
  code(form: Form): Schema<string>
  /** A field that is one of several words. @param name What messages call the words. */
  oneOf<const T extends string>(words: readonly T[], name: string): Schema<T>
  /** The slug of something that exists, if all of these are known. */
  reference(noun: string, known: Slugs | undefined): Schema<string>
  integer(min?: number, max?: number): Schema<number>
  readonly flag: Schema<boolean>
  /** Milliseconds since the epoch. */
  readonly instant: Schema<number>
  /** A list of up to `max` items. @param noun What messages ask for instead of another value. Default: a list. */
  list<T>(
    max: number,
    item: Schema<T>,
    check?: (items: readonly T[]) => PartError | undefined,
    noun?: string,
  ): Schema<T[]>
  /** An object whose members have to do with each other. */
  checked<T extends object>(schema: Schema<T>, check: (value: T) => PartError | undefined): Schema<T>
}

/** Slugs of what exists. */
export interface Slugs {
  has(slug: string): boolean
}

/** A form of text. */
export interface Form {
  /** What messages ask for instead of a text in another form. */
  readonly name: string
  /** What they ask for instead of a value that is not text, in a line. Default: text. */
  readonly noun?: string
  isValid(text: string): boolean
}

/** A form of text that messages call by one name. */
export function form(name: string, isValid: (text: string) => boolean): Form {
  return { name, noun: name, isValid }
}

const slugName = 'a slug (1–80 of a-z, 0-9 and -, a letter or digit first)'

export const SLUG: Form & { readonly noun: string } = {
  name: slugName,
  noun: 'a slug',
  isValid: (text) => SLUG_PATTERN.test(text),
}

/** `recent` is the path of the newest profiles. */
export const PROFILE_SLUG: Form = {
  name: `${slugName} other than "recent"`,
  noun: 'a slug other than "recent"',
  isValid: (text) => text !== 'recent' && SLUG_PATTERN.test(text),
}

export const COUNTRY: Form = {
  name: 'an ISO 3166-1 alpha-2 code or XK, in upper case',
  isValid: isCountryCode,
}

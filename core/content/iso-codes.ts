import { createLruCache } from '../lib/lru.ts'
import names from './country-names.json' with { type: 'json' }

/**
 * All 249 officially assigned ISO 3166-1 alpha-2 codes and `XK` (Kosovo, user-assigned), with their short names in CLDR
 * 48; the full ones where the short one is an abbreviation or half a name (BA, GB, US). Runtimes ship different
 * versions of them.
 */
const englishNames: ReadonlyMap<string, string> = new Map(Object.entries(names))

/** The country codes in alphabetical order. */
export const COUNTRY_CODES: readonly string[] = [...englishNames.keys()]

export function isCountryCode(text: string): boolean {
  return englishNames.has(text)
}

/** Parses a country code in either case; letters that only upper case turns into a code (`ß`, `ﬁ`) are refused. */
export function parseCountryCode(text: string): string | undefined {
  const code = /^[a-z]{2}$/i.test(text) ? text.toUpperCase() : ''
  return isCountryCode(code) ? code : undefined
}

export const COUNTRY_MESSAGE = 'must be an assigned ISO 3166-1 alpha-2 code'

/** Tags registered before the grammar existed (RFC 5646 §2.1, `irregular`). */
const irregularTags =
  'en-GB-oed|i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)|' +
  'sgn-(?:BE-FR|BE-NL|CH-DE)'

/** A pattern that matches each letter in either case; JSON Schema has no flag for that. */
function inEitherCase(text: string): string {
  return text.replace(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`)
}

/** RFC 5646 §2.1: language, script, region, variants, extensions, private use. */
export const LOCALE_PATTERN: string =
  '^(?:(?:[A-Za-z]{2,3}(?:-[A-Za-z]{3}){0,3}|[A-Za-z]{4,8})(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?' +
  '(?:-(?:[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(?:-[A-WYZa-wyz0-9](?:-[A-Za-z0-9]{2,8})+)*' +
  `(?:-[Xx](?:-[A-Za-z0-9]{1,8})+)?|[Xx](?:-[A-Za-z0-9]{1,8})+|${inEitherCase(irregularTags)})$`

const languageTag = new RegExp(LOCALE_PATTERN)

export const LOCALE_MESSAGE = 'must be a BCP 47 language tag'

/** Whether a text is a well-formed BCP 47 language tag. */
export function isLocale(text: string): boolean {
  return text.length <= maxTagLength && languageTag.test(text)
}

/** The longest tag that is read: longer than any meaningful one (RFC 5646 §4.4.1 counts 35). */
const maxTagLength = 255

/** Names by code, of 64 locales. A formatter takes a hundred times as long as a look-up. */
const namesByLocale = createLruCache<ReadonlyMap<string, string>>(64)

/** The name of a country in a language, from the runtime; in English if the runtime does not know that name. */
export function countryName(code: string, locale: string): string {
  return (locale === 'en' ? englishNames : countryNames(locale)).get(code) ?? code
}

function countryNames(locale: string): ReadonlyMap<string, string> {
  const cached = namesByLocale.get(locale)
  if (cached !== undefined) return cached
  const supported = supportedLocale(locale)
  const byCode = new Map(englishNames)
  if (new Intl.Locale(supported).language !== 'en') {
    const names = new Intl.DisplayNames(supported, { type: 'region', fallback: 'none' })
    for (const code of COUNTRY_CODES) byCode.set(code, names.of(code) ?? byCode.get(code)!)
  }
  namesByLocale.set(locale, byCode)
  return byCode
}

/** `Intl` throws for some well-formed tags. */
function supportedLocale(locale: string): string {
  try {
    return Intl.DisplayNames.supportedLocalesOf(locale)[0] ?? 'en'
  } catch {
    return 'en'
  }
}

/**
 * The currencies of ISO 4217 list one whose minor unit does not have 2 decimals. Withdrawn codes and codes without a
 * minor unit (metals, funds of international bodies, testing) are left out. `Intl` has other numbers: CLDR's digits
 * follow cash.
 */
const codesByExponent: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

/** The currencies with two decimals. Not a set, so that bundlers can drop it from a service that imports nothing. */
const twoDecimalCodes =
  'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF ' +
  'CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG ' +
  'HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR ' +
  'MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD ' +
  'SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD ' +
  'XCG YER ZAR ZMW ZWG'

const exponents: ReadonlyMap<string, number> = new Map(
  Object.entries(codesByExponent).flatMap(([exponent, codes]) =>
    codes.split(' ').map((code) => [code, Number(exponent)] as const)
  ),
)

/** Whether a text is the code of a currency that a price can be in, in upper case. */
export function isCurrencyCode(text: string): boolean {
  return exponents.has(text) || /^[A-Z]{3}$/.test(text) && twoDecimalCodes.includes(text)
}

/** The number of decimals of a currency's minor unit in ISO 4217: 2 for EUR and unknown codes, 0 for JPY, 3 for KWD. */
export function currencyExponent(code: string): number {
  return exponents.get(code) ?? 2
}

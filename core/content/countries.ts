import { createBoundedMap } from '../cache/bounded.ts'

/**
 * All 249 officially assigned ISO 3166-1 alpha-2 codes and `XK` (Kosovo, user-assigned), in alphabetical order.
 */
export const COUNTRY_CODES: readonly string[] = (
  'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY ' +
  'BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK ' +
  'FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR ' +
  'IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ' +
  'ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM ' +
  'PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF ' +
  'TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW'
).split(' ')

const codes: ReadonlySet<string> = new Set(COUNTRY_CODES)

/** Whether a text is one of {@linkcode COUNTRY_CODES}: in upper case. */
export function isCountryCode(text: string): boolean {
  return codes.has(text)
}

/**
 * Reads a country code in either case.
 *
 * @returns The code as {@linkcode COUNTRY_CODES} has it, or `undefined`. Letters that only become a code when they
 * are capitalised (`ß`, `ﬁ`) are none.
 */
export function parseCountryCode(text: string): string | undefined {
  const code = /^[a-z]{2}$/i.test(text) ? text.toUpperCase() : ''
  return isCountryCode(code) ? code : undefined
}

/** Tags that were registered before there was a grammar (RFC 5646 §2.1, `irregular`). */
const irregularTags =
  'en-GB-oed|i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)|' +
  'sgn-(?:BE-FR|BE-NL|CH-DE)'

/** RFC 5646 §2.1: language, script, region, variants, extensions, private use. */
const languageTag = new RegExp(
  '^(?:(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?' +
    '(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wy-z0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?' +
    `|x(?:-[a-z0-9]{1,8})+|${irregularTags})$`,
  'i',
)

/** Whether a text is a well-formed BCP 47 language tag, known or not. */
export function isLocale(text: string): boolean {
  return text.length <= maxTagLength && languageTag.test(text)
}

/** Longer than any tag that says something (RFC 5646 §4.4.1 counts 35). */
const maxTagLength = 255

/** Names by code. Asking a formatter costs a hundred times what a look-up does. */
type Names = ReadonlyMap<string, string>

/** The names in 64 locales are kept: making them costs a millisecond. */
const namesByLocale = createBoundedMap<Names>(64)

/**
 * The name of a country in a language, in English where the runtime has no data for it.
 *
 * @param code One of {@linkcode COUNTRY_CODES}.
 * @param locale A tag that {@linkcode isLocale} accepts.
 */
export function countryName(code: string, locale: string): string {
  return namesIn(locale).get(code) ?? code
}

function namesIn(locale: string): Names {
  const kept = namesByLocale.get(locale)
  if (kept !== undefined) return kept
  const names = new Intl.DisplayNames(supported(locale), { type: 'region' })
  const made = new Map(COUNTRY_CODES.map((code) => [code, names.of(code) ?? code]))
  namesByLocale.set(locale, made)
  return made
}

/** `Intl` knows fewer tags than there are, and throws at the others. */
function supported(locale: string): string {
  try {
    return Intl.DisplayNames.supportedLocalesOf(locale)[0] ?? 'en'
  } catch {
    return 'en'
  }
}

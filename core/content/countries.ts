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

/** Whether a text is a well-formed BCP 47 language tag, known or not. */
export function isLocale(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length === 1
  } catch {
    return false
  }
}

/** Building a formatter costs a thousand times what a name does; those of 64 locales are kept. */
const formatters = createBoundedMap<Intl.DisplayNames>(64)

/**
 * The name of a country in a language, in English where the runtime has no data for it.
 *
 * @param locale A tag that {@linkcode isLocale} accepts.
 * @throws {RangeError} when the locale is malformed.
 */
export function countryName(code: string, locale: string): string {
  return formatterFor(locale).of(code) ?? code
}

function formatterFor(locale: string): Intl.DisplayNames {
  const kept = formatters.get(locale)
  if (kept !== undefined) return kept
  const [supported = 'en'] = Intl.DisplayNames.supportedLocalesOf(locale)
  const formatter = new Intl.DisplayNames(supported, { type: 'region' })
  formatters.set(locale, formatter)
  return formatter
}

/**
 * The currencies of ISO 4217 list one whose minor unit has another number of decimals than 2. Codes without a minor
 * unit (metals, funds of international bodies, testing) price nothing and are left out, as are withdrawn ones. `Intl`
 * has other numbers: CLDR's digits follow what is customary in cash.
 */
const codesByExponent: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

/** Those with 2. Text and no set, so that what only serves is bundled without it. */
const usualCodes =
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

/** Whether a text is the code, in upper case, of a currency that a price can be in. */
export function isCurrencyCode(text: string): boolean {
  return exponents.has(text) || /^[A-Z]{3}$/.test(text) && usualCodes.includes(text)
}

/**
 * How many decimals the minor unit of a currency stands for in ISO 4217: 2 for EUR, 0 for JPY, 3 for KWD.
 *
 * @returns 2 for a code that is not known.
 */
export function currencyExponent(code: string): number {
  return exponents.get(code) ?? 2
}

/** Section 4: countries, industries and plans. */
import { COUNTRY_CODES } from '../../../core/content/iso-codes.ts'
import { dataOf, expectInvalid } from './expect.ts'
import { byCodePoints, countriesInUse, englishName, industries, plans, words } from './oracle.ts'
import { get, type Service, type Suite, type TestContext } from './service.ts'

interface Country {
  readonly code: string
  readonly name: string
  readonly profile_count: number
}

export const reference: readonly Suite[] = [{
  tests: {
    'countries are the ISO 3166-1 codes with the counts of the partner': countryList,
    'locale selects the language of country names': countryNames,
    'industries have the counts of the partner': industryList,
    'plans are listed by position with the exponent of their currency': planList,
    'in_use other than true or false is refused': inUse,
  },
}]

async function listCountries(
  t: TestContext,
  service: Service,
  query: string,
  partner = 'demo',
): Promise<Country[]> {
  const key = service.world.keys[`${partner as 'demo' | 'acme'} full`]
  const response = await get(service, `/public/countries?partner=${partner}${query}`, { key })
  return dataOf(t, response, `countries of ${partner}${query}`)
}

async function countryList(t: TestContext, service: Service): Promise<void> {
  for (const partner of ['demo', 'acme']) {
    const all = await listCountries(t, service, '', partner)
    const used = countriesInUse(service.world, partner)
    t.equal(all.length, 250, 'the 249 codes of ISO 3166-1, and XK')
    t.strictSame(all.map(({ code }) => code).toSorted(), COUNTRY_CODES, 'each code once')
    t.strictSame(
      all.filter(({ profile_count: count }) => count > 0),
      used,
      'counts are of the profiles visible to the partner',
    )
    t.strictSame(await listCountries(t, service, '&in_use=true', partner), used, 'in use')
    t.strictSame(await listCountries(t, service, '&in_use=false', partner), all, 'in_use=false lists all')
  }
  const all = await listCountries(t, service, '')
  expectSorted(t, all, 'en')
  const acme = await listCountries(t, service, '&in_use=true', 'acme')
  t.equal(
    acme.find(({ code }) => code === 'TV')?.profile_count,
    1,
    'a private profile counts for its partner',
  )
  t.equal(
    all.find(({ code }) => code === 'TV')?.profile_count,
    0,
    'a private profile counts for no other partner',
  )
}

function expectSorted(t: TestContext, list: readonly Country[], locale: string): void {
  const folded = list.map(({ name }) => words(name).join(' '))
  t.strictSame(folded, folded.toSorted(byCodePoints), `by folded name: ${locale}`)
  const [first, second] = ['AX', 'AF'].map((code) => list.findIndex((country) => country.code === code))
  t.ok((first ?? -1) >= 0 && (second ?? -1) >= 0, 'the list has Åland and Afghanistan')
}

async function countryNames(t: TestContext, service: Service): Promise<void> {
  const named = async (locale: string, code: string): Promise<string | undefined> => {
    const list = await listCountries(t, service, `&locale=${locale}`)
    expectSorted(t, list, locale)
    t.equal(list.length, 250)
    return list.find((country) => country.code === code)?.name
  }
  t.equal(await named('de', 'DE'), 'Deutschland')
  t.equal(await named('DE', 'AT'), 'Österreich', 'tags are case-insensitive')
  t.equal(await named('de-CH-1996', 'CH'), 'Schweiz', 'a variant without its own data')
  t.equal(await named('fr', 'DE'), 'Allemagne')
  t.equal(await named('ja', 'JP'), '日本')
  t.equal(await named('ar-u-nu-latn', 'EG'), 'مصر', 'with an extension')
  t.equal(await named('zh-Hant', 'DE'), '德國')
  const english = await listCountries(t, service, '')
  t.strictSame(english.filter(({ code, name }) => name !== englishName(code)), [])
  const untranslated = await listCountries(t, service, '&locale=rw')
  t.strictSame(untranslated.filter(({ code, name }) => name === code), [], 'English fills gaps of a locale')
  for (const locale of ['en', 'en-GB', 'tlh', 'xx', 'zxx']) {
    t.strictSame(
      await listCountries(t, service, `&locale=${locale}`),
      english,
      `${locale} falls back to English`,
    )
  }
  const malformed = ' - d deutsch_land de_DE de- -de de--DE toolongtag * de,en 1 de%00'.split(' ')
  for (const locale of malformed) {
    const response = await get(service, `/public/countries?partner=demo&locale=${locale}`)
    expectInvalid(t, response, ['locale'], `locale=${locale}`)
  }
  const twice = await get(service, '/public/countries?partner=demo&locale=de&locale=de')
  expectInvalid(t, twice, ['locale'], 'two locales')
}

async function industryList(t: TestContext, service: Service): Promise<void> {
  for (const partner of ['demo', 'acme'] as const) {
    const key = service.world.keys[`${partner} full`]
    const expected = industries(service.world, partner)
    const used = expected.filter(({ profile_count: count }) => count !== 0)
    t.ok(used.length > 10 && used.length < expected.length, 'some industries are in use, not all')
    const path = `/public/industries?partner=${partner}`
    t.strictSame((await get(service, path, { key })).json, { data: expected }, `industries of ${partner}`)
    t.strictSame((await get(service, `${path}&in_use=true`, { key })).json, { data: used }, 'in use')
    const { json } = await get(service, `${path}&in_use=false`, { key })
    t.strictSame(json, { data: expected }, 'in_use=false lists all')
  }
  const locale = await get(service, '/public/industries?partner=demo&locale=de')
  expectInvalid(t, locale, ['locale'], 'industries take no locale')
}

async function planList(t: TestContext, service: Service): Promise<void> {
  const response = await get(service, '/public/plans?partner=demo')
  t.strictSame(response.json, { data: plans(service.world) }, 'all plans')
  const data: readonly { slug: string; price: object }[] = response.json.data
  const order = 'starter also-second directory directory-japan launch-package unplaced-a unplaced-b'
    .split(' ')
  t.strictSame(data.map(({ slug }) => slug), order, 'by position, then slug; those without one last')
  const prices = Object.fromEntries(data.map(({ slug, price }) => [slug, price]))
  t.strictSame(prices['directory-japan'], { amount_minor: 12_000, currency: 'JPY', exponent: 0 })
  t.strictSame(prices['unplaced-b'], { amount_minor: 1500, currency: 'KWD', exponent: 3 })
  t.strictSame(prices['also-second'], { amount_minor: 4900, currency: 'USD', exponent: 2 })
  for (const name of ['in_use', 'limit', 'currency']) {
    const response = await get(service, `/public/plans?partner=demo&${name}=true`)
    expectInvalid(t, response, [name], `plans take no ${name}`)
  }
}

async function inUse(t: TestContext, service: Service): Promise<void> {
  for (const path of ['/public/countries', '/public/industries']) {
    for (const value of ['', '1', '0', 'yes', 'TRUE', 'True', 'null', 'true,false', 'true%20']) {
      const response = await get(service, `${path}?partner=demo&in_use=${value}`)
      expectInvalid(t, response, ['in_use'], `${path} in_use=${value}`)
    }
    const twice = await get(service, `${path}?partner=demo&in_use=true&in_use=true`)
    expectInvalid(t, twice, ['in_use'], `${path}, in_use twice`)
    const several = await get(service, `${path}?partner=demo&in_use=x&a=1&b=2`)
    expectInvalid(t, several, ['a', 'b', 'in_use'], 'all invalid parameters are reported')
  }
}

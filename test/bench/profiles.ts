/** Generated profiles, varied in what makes a directory slow or fast. */
import { fold } from '../../core/lib/text.ts'
import type { Industry } from '../../core/model.ts'
import type { ProfileRecord } from '../../core/ports/content.ts'
import { PARTNER } from '../support/partner.ts'

/** Stands in the text of a third of all profiles. */
export const COMMON_WORD = 'workshop'

export const COUNTRIES: readonly string[] = (
  'AR AT AU BE BR CA CH CL CN CZ DE DK EE ES FI FR GB GR HU IE IN IT JP KE KR LT LV MA MX NG NL NO NZ PE PL ' +
  'PT RO SE US ZA'
).split(' ')

const industryNames = (
  'Agriculture,Architecture,Ceramics,Culture,Education,Energy,Finance,Food,Health,Hospitality,Logistics,' +
  'Machinery,Media,Metalwork,Music,Optics,Printing,Research,Retail,Shipping,Software,Textiles,Tourism,Woodwork'
).split(',')

export const INDUSTRIES: readonly Industry[] = industryNames.map((name) => ({
  slug: name.toLowerCase(),
  name,
  parentSlug: undefined,
}))

const openings = (
  'Amber,Birch,Blue,Bright,Copper,Élan,Evening,First,Golden,Grand,Green,High,Iron,Little,Lunar,New,North,Old,' +
  'Quiet,Red,River,Royal,Silver,Société,Solid,South,Stone,Swift,Über,Union,Velvet,West,White,Wild,Young,Zénith'
).split(',')
const middles = (
  'Anchor,Arbor,Bay,Bridge,Compass,Cove,Field,Forge,Garden,Gate,Harbour,Hill,Island,Lantern,Loom,Market,Meadow,' +
  'Mill,Oak,Orchard,Peak,Pine,Quarry,Ridge,Sail,Spring,Star,Summit,Tower,Valley,Wave,Willow'
).split(',')
const endings =
  'Associates,Atelier,Brothers,Collective,Company,Group,House,Institute,Lab,Partners,Society,Trust'
    .split(',')
const trades = (
  'bells,boats,books,bread,bridges,bulbs,carpets,clocks,dyes,engines,fabrics,gardens,glass,kites,lamps,lenses,' +
  'maps,mills,nets,organs,paper,pigments,pumps,ropes,saddles,seeds,stoves,tiles,tools,violins'
).split(',')
const cities = 'Aarhus,Bilbao,Cork,Dresden,Évora,Ghent,Kraków,Łódź,Málaga,Nagoya,Oulu,Porto,Quito,Riga,Turin'
  .split(',')

const day = 86_400_000
const newest = Date.UTC(2026, 0, 1)

/** The `count` profiles from `first` on; the same number always makes the same profile. */
export function* profiles(count: number, first = 0): Generator<ProfileRecord> {
  for (let number = first; number < first + count; number++) yield profile(number)
}

function profile(number: number): ProfileRecord {
  const random = createRandom(number)
  const name = `${pick(openings, random)} ${pick(middles, random)} ${pick(endings, random)}`
  const slug = `${fold(name).replaceAll(' ', '-')}-${number.toString(36)}`
  const trade = pick(trades, random)
  const other = pick(trades, random)
  const site = `https://${slug}.example`
  const place = random() < 1 / 3 ? COMMON_WORD : 'studio'
  return {
    slug,
    name,
    headline: `Makers of ${trade} and ${other} since ${1850 + Math.floor(random() * 170)}`,
    country: pick(COUNTRIES, random),
    industry: pick(INDUSTRIES, random).slug,
    // Drafts and profiles shared with some partners only are what a page has to leave out.
    publishedAt: number % 97 === 96 ? undefined : newest - Math.floor(random() * 1000 * day),
    visibleTo: number % 50 === 49 ? [PARTNER] : undefined,
    logoUrl: number % 5 === 4 ? undefined : `https://assets.example/logos/${slug}.svg`,
    description: `A ${place} for ${trade} where ${pick(endings, random).toLowerCase()} meet.`,
    websiteUrl: site,
    city: pick(cities, random),
    foundedYear: 1900 + Math.floor(random() * 120),
    employees: { min: 1, max: 10 },
    tags: [trade, other],
    contact: { email: `hello@${slug}.example`, phone: undefined },
    links: [{ rel: 'press', url: `${site}/press` }],
  }
}

/**
 * Numbers from 0 up to 1 that are the same in every run (mulberry32), so that two runs ask the same questions of
 * the same rows.
 */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** One of the list, by a number from 0 up to 1. */
export function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)]!
}

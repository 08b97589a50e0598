/** The expected JSON of the content of the world: an independent implementation of section 4. */
import type { Lines, PlanLine, ProfileLine, World } from '../../support/world.ts'

/** `P`: the profiles visible to this partner now, in any order. */
export function publicSet({ profiles }: Lines, partner: string, now: number = Date.now()): ProfileLine[] {
  return profiles.filter(({ published_at: publishedAt, visible_to: visibleTo }) =>
    publishedAt !== null && Date.parse(publishedAt) <= now &&
    (visibleTo === null || visibleTo === undefined || visibleTo.includes(partner))
  )
}

const spelled = new Map(
  'ł:l ø:o đ:d ð:d þ:th ß:ss æ:ae œ:oe ı:i ħ:h ŧ:t ŋ:n'.split(' ').map((pair) => {
    const [letter = '', latin = ''] = pair.split(':')
    return [letter, latin] as const
  }),
)

const folded = new Map<string, string[]>()

/** Folded words (section 4). */
export function words(text: string): string[] {
  const found = folded.get(text) ?? fold(text)
  folded.set(text, found)
  return found
}

function fold(text: string): string[] {
  const plain = [...text.normalize('NFKD')].filter((character) => !/\p{M}/u.test(character)).join('')
    .toLowerCase().replaceAll('ς', 'σ')
  const spelledOut = [...plain].map((character) => spelled.get(character) ?? character).join('')
  return spelledOut.match(/[\p{L}\p{N}]+/gu) ?? []
}

/** Compares by code point: UTF-8 bytes sort in the same order. */
export function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** Sorts in the directory's default order. */
export function byName(profiles: readonly ProfileLine[]): ProfileLine[] {
  const nameOf = (line: ProfileLine): string => words(line.name).join(' ')
  return profiles.toSorted((a, b) => byCodePoints(nameOf(a), nameOf(b)) || byCodePoints(a.slug, b.slug))
}

/** Sorts newest first, then by slug. */
export function newestFirst(profiles: readonly ProfileLine[]): ProfileLine[] {
  const instant = (line: ProfileLine): number => Date.parse(line.published_at ?? '')
  return profiles.toSorted((a, b) => instant(b) - instant(a) || byCodePoints(a.slug, b.slug))
}

/** Whether every word of `q` starts a word of name, headline, description or tags. */
export function matches(line: ProfileLine, q: string): boolean {
  const found = [line.name, line.headline, line.description ?? '', ...line.tags ?? []].flatMap(words)
  return words(q).every((word) => found.some((candidate) => candidate.startsWith(word)))
}

const [fullNames, shortNames] = (['long', 'short'] as const)
  .map((style) => new Intl.DisplayNames('en', { type: 'region', style })) as [
    Intl.DisplayNames,
    Intl.DisplayNames,
  ]

/** The short name of CLDR, without abbreviations. */
export function englishName(country: string): string | undefined {
  return (['BA', 'GB', 'US'].includes(country) ? fullNames : shortNames).of(country)
}

/** A profile in lists. */
export function card(line: ProfileLine, { lines, importedAt }: World): Record<string, unknown> {
  const industry = lines.industries.find(({ slug }) => slug === line.industry)
  return {
    slug: line.slug,
    name: line.name,
    headline: line.headline,
    country: { code: line.country, name: englishName(line.country) },
    industry: { slug: line.industry, name: industry?.name },
    logo_url: line.logo_url ?? null,
    published_at: line.published_at,
    updated_at: new Date(importedAt).toISOString(),
  }
}

/** A profile in its own endpoint. */
export function detail(line: ProfileLine, world: World): Record<string, unknown> {
  const { employees, contact } = line
  return {
    ...card(line, world),
    description: line.description ?? null,
    website_url: line.website_url ?? null,
    city: line.city ?? null,
    founded_year: line.founded_year ?? null,
    employees: employees ? { min: employees.min ?? null, max: employees.max ?? null } : null,
    tags: line.tags ?? [],
    contact: contact ? { email: contact.email ?? null, phone: contact.phone ?? null } : null,
    links: line.links ?? [],
  }
}

/** The industries with the counts of a partner. */
export function industries({ lines }: World, partner: string): Record<string, unknown>[] {
  const counted = publicSet(lines, partner)
  return lines.industries
    .toSorted((a, b) =>
      byCodePoints(words(a.name).join(' '), words(b.name).join(' ')) ||
      byCodePoints(a.slug, b.slug)
    )
    .map(({ slug, name, parent_slug: parent }) => ({
      slug,
      name,
      parent_slug: parent ?? null,
      profile_count: counted.filter(({ industry }) => industry === slug).length,
    }))
}

/** The countries in which a partner has profiles. */
export function countriesInUse({ lines }: World, partner: string): Record<string, unknown>[] {
  const counted = publicSet(lines, partner)
  return [...new Set(counted.map(({ country }) => country))]
    .map((code) => ({
      code,
      name: englishName(code) ?? '',
      profile_count: counted.filter(({ country }) => country === code).length,
    }))
    .toSorted((a, b) => byCodePoints(words(a.name).join(' '), words(b.name).join(' ')))
}

const exponents: Readonly<Record<string, number>> = { EUR: 2, USD: 2, JPY: 0, KWD: 3 }

/** The plans. */
export function plans({ lines }: World): Record<string, unknown>[] {
  const place = (plan: PlanLine): number => plan.position ?? Infinity
  return lines.plans
    .toSorted((a, b) => place(a) === place(b) ? byCodePoints(a.slug, b.slug) : place(a) - place(b))
    .map((plan) => ({
      slug: plan.slug,
      name: plan.name,
      description: plan.description,
      price: { ...plan.price, exponent: exponents[plan.price.currency] },
      interval: plan.interval,
      features: plan.features,
      highlighted: plan.highlighted ?? false,
      position: plan.position ?? null,
    }))
}

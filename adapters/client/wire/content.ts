/** Written from the route table by test/client/write-wire.ts. */

/** A profile as lists show it. */
export interface ProfileCard {
  /** What the profile is addressed by. */
  readonly slug: string
  /** Name to show. */
  readonly name: string
  /** One line about it. */
  readonly headline: string
  /** The country that it is in. */
  readonly country: {
    /** ISO 3166-1 alpha-2, or `XK`. */
    readonly code: string
    /** English name. */
    readonly name: string
  }
  /** The industry that it belongs to. */
  readonly industry: {
    /** What the industry is addressed by. */
    readonly slug: string
    /** Name to show. */
    readonly name: string
  }
  /** Where its logo is. */
  readonly logo_url: string | null
  /** When it became public. */
  readonly published_at: string
  /** When any of it changed last. */
  readonly updated_at: string
}

/** All that is public of a profile. */
export interface Profile {
  /** What the profile is addressed by. */
  readonly slug: string
  /** Name to show. */
  readonly name: string
  /** One line about it. */
  readonly headline: string
  /** The country that it is in. */
  readonly country: {
    /** ISO 3166-1 alpha-2, or `XK`. */
    readonly code: string
    /** English name. */
    readonly name: string
  }
  /** The industry that it belongs to. */
  readonly industry: {
    /** What the industry is addressed by. */
    readonly slug: string
    /** Name to show. */
    readonly name: string
  }
  /** Where its logo is. */
  readonly logo_url: string | null
  /** When it became public. */
  readonly published_at: string
  /** When any of it changed last. */
  readonly updated_at: string
  /** What it says of itself. */
  readonly description: string | null
  /** Its website. */
  readonly website_url: string | null
  /** The place that it is in. */
  readonly city: string | null
  /** The year that it began in. */
  readonly founded_year: number | null
  /** How many people work there. */
  readonly employees: {
    /** At least so many. */
    readonly min: number | null
    /** At most so many. */
    readonly max: number | null
  } | null
  /** Words for it. */
  readonly tags: readonly string[]
  /** How to reach it. */
  readonly contact: {
    /** Address for mail. */
    readonly email: string | null
    /** Number to call. */
    readonly phone: string | null
  } | null
  /** More of it elsewhere. */
  readonly links: readonly ({
    /** What the link is for. */
    readonly rel: string
    /** Where it leads. */
    readonly url: string
  })[]
}

/** The place of a page in its list. */
export interface Page {
  /** How many rows a page has at most. */
  readonly limit: number
  /** Whether there is a page after this one. */
  readonly has_more: boolean
  /** What to send as `cursor` for the next page. */
  readonly next_cursor: string | null
}

/** The banner of a partner. */
export interface Banner {
  /** What it says. */
  readonly title: string
  /** What it says below that. */
  readonly body: string | null
  /** Its picture. */
  readonly image_url: string | null
  /** The picture in words: goes into `alt`. */
  readonly image_alt: string | null
  /** Where it leads. */
  readonly link_url: string | null
  /** What the link says. */
  readonly link_label: string | null
  /** First instant at which it shows. */
  readonly starts_at: string | null
  /** Instant from which it shows no more. */
  readonly ends_at: string | null
  /** When any of it changed last. */
  readonly updated_at: string
}

/** A country with the profiles that the partner can see in it. */
export interface Country {
  /** ISO 3166-1 alpha-2, or `XK`. */
  readonly code: string
  /** Name in the language asked for. */
  readonly name: string
  /** How many profiles the partner can see there. */
  readonly profile_count: number
}

/** An industry with the profiles that the partner can see in it. */
export interface Industry {
  /** What the industry is addressed by. */
  readonly slug: string
  /** Name to show. */
  readonly name: string
  /** The industry that this one is a part of. */
  readonly parent_slug: string | null
  /** How many profiles are in it, those in its parts not counted. */
  readonly profile_count: number
}

/** A pricing plan. */
export interface Plan {
  /** What the plan is addressed by. */
  readonly slug: string
  /** Name to show. */
  readonly name: string
  /** What it is for. */
  readonly description: string
  /** Its price. */
  readonly price: Money
  /** How often the price is due. */
  readonly interval: 'month' | 'year' | 'once'
  /** What it has, in order. */
  readonly features: readonly string[]
  /** Whether it is the one to point at. */
  readonly highlighted: boolean
  /** Its place; plans without one come last. */
  readonly position: number | null
}

/** An amount of money, in integers only. */
export interface Money {
  /** Amount in the minor unit of the currency. */
  readonly amount_minor: number
  /** ISO 4217. */
  readonly currency: string
  /** Digits of the minor unit: 2 for EUR, 0 for JPY, 3 for KWD. */
  readonly exponent: number
}

/** Enough to draw one. */
export interface Widget {
  /** Its partner. */
  readonly partner: {
    /** What the partner is addressed by. */
    readonly slug: string
    /** Name to show. */
    readonly name: string
  }
  /** Its banner. */
  readonly banner: Banner | null
  /** The newest profiles. */
  readonly profiles: readonly ProfileCard[]
  /** Its countries. */
  readonly countries: readonly Country[]
  /** Its industries. */
  readonly industries: readonly Industry[]
  /** Its plans. */
  readonly plans: readonly Plan[]
}

/** The form of every slug: 1–80 of `a-z 0-9 -`, a letter or digit first. */
export const SLUG_PATTERN: RegExp = /^[a-z0-9][a-z0-9-]{0,79}$/

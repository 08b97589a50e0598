/** Valid and invalid values of the members of a signup. */
import { forge } from './forgery.ts'

/** A well-formed key that was never issued. */
export const FORGED_KEY: string = forge('spk_live', 'Nobody000000')
/** Metadata with this many pairs. */
export const pairs = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']))
const label = 'a'.repeat(63)
/** Valid values of each member. */
export const TAKEN: readonly (readonly [field: string, values: readonly unknown[]])[] = [
  ['name', ['x', ' x', '😀'.repeat(200), 'é'.repeat(200)]],
  ['company', ['', '* *', '😀'.repeat(200)]],
  ['email', [
    'a@b',
    `!#$%&'*+/=?^_\`{|}~-.@x-y.z`,
    '.a..b.@example.com',
    `${'l'.repeat(62)}@${label}.${label}.${label}`.slice(0, 254),
  ]],
  ['country', ['de', 'DE', 'dE', 'XK', 'AX']],
  ['plan', ['starter', 'unplaced-a']],
  ['profile', ['bare', 'for-two', 'universite-de-valmorne']],
  ['locale', ['de', 'DE', 'zh-Hant-TW', 'de-CH-1996', 'ar-u-nu-latn']],
  ['message', ['', 'x'.repeat(2000), '😀'.repeat(2000)]],
  ['consent_at', [
    '2026-01-31T09:30:00Z',
    '2024-02-29t00:00:00.123456-23:59',
    '1969-07-20T20:17:40Z',
    '2016-12-31T23:59:60Z',
    '2017-01-01T05:29:60.5+05:30',
  ]],
  ['metadata', [
    {},
    pairs(20),
    { ['😀'.repeat(40)]: '😀'.repeat(500) },
    JSON.parse('{"__proto__":"x","constructor":"y","toString":"z"}'),
  ]],
]
const text = [1, true, [], {}, 'NUL \0', 'half \ud83d', 'half \ude00 x', `a key: ${FORGED_KEY}`]
const blanks = [' ', '\u2003\u3000', '\u200b']
const lines = ['a\nb', 'a\tb', 'a\u007f', 'a\u0085', 'a\u2028b']
/** Invalid values of each member. */
export const REFUSED: readonly (readonly [field: string, values: readonly unknown[]])[] = [
  ['name', [null, '', '😀'.repeat(201), ...blanks, ...lines, ...text]],
  ['company', ['x'.repeat(201), ...blanks, ...lines, ...text]],
  ['email', [
    null,
    '',
    'a',
    '@b',
    'a@',
    'a@b@c',
    'a b@c',
    'a@b c',
    'a@-b',
    'a@b-',
    'a@b..c',
    'a@.b',
    'a@b.',
    'ä@b.c',
    'a@ö.de',
    '"a"@b.c',
    'a@[127.0.0.1]',
    'a@b_c',
    ' a@b',
    'a@b\n',
    `a@${'a'.repeat(64)}`,
    `${'a'.repeat(253)}@b`,
    `${FORGED_KEY}@example.com`,
    ...text,
  ]],
  ['country', ['', 'D', 'DEU', 'UK', 'ZZ', 'EU', 'ß', 'ﬁ', 'ıt', ' DE', 'DE\n', ...text]],
  ['plan', ['', 'nothing', 'Starter', 'starter ', 'constructor', '__proto__', 'x'.repeat(9000), ...text]],
  ['profile', ['', 'nothing', 'Bare', 'for-acme', 'for-nobody', 'draft', 'not-yet', '../bare', ...text]],
  ['locale', ['', 'de_DE', 'd', 'de-', '*', 'de,en', ...text]],
  ['message', ['x'.repeat(2001), '😀'.repeat(2001), ...text]],
  ['consent_at', [
    '',
    '2026-01-31',
    '2026-01-31T09:30:00',
    '2026-01-31 09:30:00Z',
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-01-31T24:00:00Z',
    '2016-12-30T23:59:60Z',
    '2016-12-31T23:58:60Z',
    '9999-12-31T23:59:60Z',
    '2026-01-31T09:30:00+1:00',
    'yesterday',
    1_700_000_000,
    ...text,
  ]],
  ['metadata', [1, 'x', true, [], ['a'], pairs(21)]],
]

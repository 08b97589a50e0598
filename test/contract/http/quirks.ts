/** Where a runtime differs before the service gets the request. */
export type Quirk = 'resolves-targets' | 'no-trace' | 'knows-few-methods' | 'names-some-countries'

/** The reason of each. */
export const QUIRKS: Readonly<Record<Quirk, string>> = {
  'resolves-targets':
    'Bun, workerd and Request itself resolve the URL: dot segments are gone before they can be refused. To Bun and Request a backslash is a slash.',
  'no-trace': 'The Fetch standard forbids TRACE, so that Request and workerd refuse it by themselves.',
  'knows-few-methods':
    'workerd answers 501 to methods that are registered and rare, without asking the Worker.',
  'names-some-countries':
    'Country names are the runtime’s: Deno and workerd have Chromium’s edition of CLDR, which calls FK, HK, MO and PS otherwise.',
}

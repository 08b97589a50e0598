/** Differences of a runtime that take effect before the service receives the request. */
export type Quirk = 'resolves-targets' | 'no-trace' | 'knows-few-methods'

/** The reason for each quirk. */
export const QUIRKS: Readonly<Record<Quirk, string>> = {
  'resolves-targets':
    'Bun, workerd and Request resolve the URL, which removes dot segments before the service can refuse them. Bun and Request treat a backslash as a slash.',
  'no-trace': 'The Fetch standard forbids TRACE: Request and workerd reject it themselves.',
  'knows-few-methods': 'workerd answers rare registered methods with 501 without calling the Worker.',
}

/** Every permission that a key can hold, in the specification's order. */
export const SCOPES = [
  'read:partner-widget',
  'read:profiles',
  'read:banner',
  'read:countries',
  'read:industries',
  'read:plans',
  'create:partner-signups',
  'read:partner-reports',
] as const

/** One permission of a key. */
export type Scope = (typeof SCOPES)[number]

/** Whether `text` names a scope. */
export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

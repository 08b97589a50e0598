/**
 * A JSON value as text that is the same for equal values: members in the order of their names' UTF-16 units, and
 * every number and string as ECMAScript writes it (RFC 8785 §3.2).
 *
 * @param value What `JSON.parse` made.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join()}}`
}

/**
 * Whether an object in a JSON text has two members of one name, which parsers disagree about (RFC 8259 §4).
 *
 * @param text Known to be JSON: its tokens are walked, and a string before a colon is a member's name.
 */
export function hasDuplicateMembers(text: string): boolean {
  // Two members have two colons.
  if (text.indexOf(':') === text.lastIndexOf(':')) return false
  const open: (Set<string> | undefined)[] = []
  for (const [token, , colon] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*(:))?|[{}[\]]/g)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (colon !== undefined) {
      const names = open.at(-1)
      const name: string = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1))
      if (names?.has(name)) return true
      names?.add(name)
    }
  }
  return false
}

/** @returns `undefined` when the text is not JSON. The parser's own message would quote the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

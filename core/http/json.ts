import { Problem } from './problem.ts'

/**
 * Reads a JSON text (RFC 8259): UTF-8 without a byte-order mark, and no object with two members of one name,
 * which parsers disagree about (§4).
 *
 * @throws {Problem} `malformed_request` for anything else.
 */
export function readJson(bytes: Uint8Array): unknown {
  const text = decodeUtf8(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Problem('malformed_request', { detail: 'The body is not JSON.' })
  }
  if (hasDuplicateMembers(text)) {
    throw new Problem('malformed_request', { detail: 'An object in the body has two members of one name.' })
  }
  return value
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    // The mark is kept so that JSON.parse refuses it.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Problem('malformed_request', { detail: 'The body is not UTF-8.' })
  }
}

/** Walks the tokens of a text that is known to be JSON; a string before a colon is a member's name. */
function hasDuplicateMembers(text: string): boolean {
  const open: (Set<string> | undefined)[] = []
  for (const [token, , colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*(:))?|[{}[\]]/g)) {
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

/** A member's place in a document as a JSON Pointer (RFC 6901 §3). */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

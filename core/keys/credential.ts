/** The credential of a request: which of its headers carries it, and whether they contradict each other. */

/** Stands for the credential of a request that carries several different ones, or one header twice. */
export const ambiguous: unique symbol = Symbol('ambiguous')

/**
 * Reads the credential from its two headers; `undefined` without one.
 *
 * @param keyHeader The value of `X-Service-Partner-Key`. No key contains a comma: one means that the field is repeated
 * (RFC 9110 §5.3).
 * @param authorization The value of `Authorization`. A scheme other than `Bearer` is ignored.
 */
export function readCredential(
  keyHeader: string | undefined,
  authorization: string | undefined,
): string | typeof ambiguous | undefined {
  if (keyHeader?.includes(',')) return ambiguous
  const key = keyHeader === '' ? undefined : keyHeader
  if (authorization === undefined) return key
  if (isRepeated(authorization)) return ambiguous
  const token = bearerToken(authorization)
  if (key === undefined || token === undefined) return key ?? token
  return key === token ? key : ambiguous
}

/** The token of a bearer credential, whose scheme is case-insensitive (RFC 6750 §2.1, RFC 9110 §11.1). */
function bearerToken(authorization: string): string | undefined {
  if (!authorization.startsWith('Bearer ') && !bearer.test(authorization)) return undefined
  const token = authorization.slice(7).trim()
  return token === '' ? undefined : token
}

const bearer = /^bearer(?: |$)/i

/** The longest value of another scheme that is parsed, in characters. */
const maxParsedLength = 8192

/**
 * `Authorization` has one value, but a scheme may separate its parameters by commas (RFC 9110 §11.4): after a comma
 * comes a parameter, `name=`, or the next value of a repeated field. A value with a comma that is too long to parse, or
 * has an unclosed quote, counts as repeated.
 */
function isRepeated(authorization: string): boolean {
  if (!authorization.includes(',')) return false
  if (bearer.test(authorization)) return true
  if (authorization.length > maxParsedLength) return true
  const pieces = authorization.replace(quoted, (_, end: string) => end === '' ? ',' : '""').split(',')
  return pieces.slice(1).some((piece) => !/^\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*=/.test(piece))
}

/** A quoted string (RFC 9110 §5.6.4), closed or not: it matches at every quote, so that it never backtracks. */
const quoted = /"(?:[^"\\]|\\[^])*\\?("?)/g

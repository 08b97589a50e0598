/** The credential that a request presents. */
export type Credential =
  | { readonly kind: 'missing' }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'presented'; readonly text: string }

const missing: Credential = { kind: 'missing' }
const ambiguous: Credential = { kind: 'ambiguous' }

/**
 * Reads the credential from its two headers.
 *
 * @param keyHeader The value of `X-Service-Partner-Key`; a comma means that the field was repeated, because
 * no key holds one (RFC 9110 §5.3).
 * @param authorization The value of `Authorization`; a scheme other than `Bearer` is somebody else's business.
 */
export function readCredential(keyHeader: string | undefined, authorization: string | undefined): Credential {
  if (authorization === undefined) {
    if (keyHeader === undefined || keyHeader === '') return missing
    return keyHeader.includes(',') ? ambiguous : { kind: 'presented', text: keyHeader }
  }
  if (isRepeated(authorization) || keyHeader?.includes(',')) return ambiguous
  const token = bearerToken(authorization)
  if (keyHeader === undefined || keyHeader === '') {
    return token === undefined ? missing : { kind: 'presented', text: token }
  }
  if (token !== undefined && token !== keyHeader) return ambiguous
  return { kind: 'presented', text: keyHeader }
}

/** The scheme is compared without case, and nothing after it is no credential (RFC 6750 §2.1, RFC 9110 §11.1). */
function bearerToken(authorization: string): string | undefined {
  if (!authorization.startsWith('Bearer ') && !bearer.test(authorization)) return undefined
  const token = authorization.slice(7).trim()
  return token === '' ? undefined : token
}

const bearer = /^bearer(?: |$)/i

/** Characters: another scheme's credentials are not parsed beyond this length. */
const maxParsedLength = 8192

/**
 * `Authorization` has one value, but a scheme may separate its parameters by commas (RFC 9110 §11.4): what
 * follows a comma is a parameter, `name=`, or it is another value of a repeated field. A value that is too long to
 * parse, or has an unclosed quote, counts as repeated when there is a comma in it.
 */
function isRepeated(authorization: string): boolean {
  if (!authorization.includes(',')) return false
  if (bearer.test(authorization)) return true
  if (authorization.length > maxParsedLength) return true
  const pieces = authorization.replace(quoted, (_, end: string) => end === '' ? ',' : '""').split(',')
  return pieces.slice(1).some((piece) => !/^\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*=/.test(piece))
}

/** A quoted string (RFC 9110 §5.6.4), or what an unclosed one would hold. It matches from every quote: no backtracking. */
const quoted = /"(?:[^"\\]|\\[^])*\\?("?)/g

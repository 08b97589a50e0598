/** SHA-256 of the UTF-8 bytes of a text, in lower-case hexadecimal. */
export type Sha256 = (text: string) => string

/** Compares two digests in constant time. */
export function equalDigests(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let index = 0; index < a.length; index++) difference |= a.charCodeAt(index) ^ b.charCodeAt(index)
  return difference === 0
}

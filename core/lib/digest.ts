/** SHA-256 of the UTF-8 bytes of a text, in lower-case hexadecimal. Stores bring the runtime's own. */
export type Sha256 = (text: string) => string

/** Compares two digests in a time that does not tell where they differ. */
export function equalDigests(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let index = 0; index < a.length; index++) difference |= a.charCodeAt(index) ^ b.charCodeAt(index)
  return difference === 0
}

/** SHA-256 of the UTF-8 bytes of a text, in lower-case hexadecimal. */
export type Sha256 = (text: string) => string

const digestLength = 64
const encoder = new TextEncoder()
const words = new Uint32Array(digestLength / 2)
const left = new Uint8Array(words.buffer, 0, digestLength)
const right = new Uint8Array(words.buffer, digestLength)

/** Compares two digests, or parts of them whose length is a multiple of four, in constant time. */
export function equalDigests(a: string, b: string): boolean {
  encoder.encodeInto(a, left)
  // Of a text that is too long or not ASCII, the words lack the end.
  const { written } = encoder.encodeInto(b, right)
  let difference = a.length ^ b.length | a.length ^ written
  for (let index = 0; index < a.length / 4; index++) difference |= words[index]! ^ words[index + 16]!
  return difference === 0
}

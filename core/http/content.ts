/** The content of an answer: text, to be sent in UTF-8, or the bytes of it where they are sent more than once. */
export type Content = string | Uint8Array

const encoder = new TextEncoder()
/** Longer than nearly all answers. */
const scratch = new Uint8Array(65_536)

/** The bytes of a text in UTF-8. */
export function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

/** How many bytes a text has in UTF-8. Encodes into the same place each time, which costs no memory. */
export function byteLength(text: string): number {
  const { read, written } = encoder.encodeInto(text, scratch)
  return read === text.length ? written : encoder.encode(text).length
}

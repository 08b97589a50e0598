const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) {
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1
  }
  return remainder
})

/**
 * CRC-32 (IEEE 802.3, the one of zip and PNG) of ASCII text.
 *
 * @returns An unsigned 32-bit integer.
 */
export function crc32(text: string): number {
  let remainder = -1
  for (let index = 0; index < text.length; index++) {
    remainder = (table[(remainder ^ text.charCodeAt(index)) & 0xff] ?? 0) ^ (remainder >>> 8)
  }
  return ~remainder >>> 0
}

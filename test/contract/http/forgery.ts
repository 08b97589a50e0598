/** Keys that were never issued, in the format of section 6. */
import { crc32 } from 'node:zlib'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A key with this id, a made-up secret and a valid checksum. */
export function forge(start: string, id: string, secret = 'Forged00'.repeat(4)): string {
  const unsigned = `${start}_${id}_${secret}`
  return unsigned + checksum(unsigned)
}

/** Six base62 digits of the CRC-32 of the text (section 6), computed by zlib rather than by core. */
export function checksum(text: string): string {
  let rest = crc32(text)
  let sum = ''
  while (sum.length < 6) {
    sum = digits.charAt(rest % 62) + sum
    rest = Math.floor(rest / 62)
  }
  return sum
}

/** Replaces one character with another of the alphabet. */
export function tamper(text: string, index: number): string {
  const other = digits.charAt((digits.indexOf(text.charAt(index)) + 1) % 62)
  return text.slice(0, index) + other + text.slice(index + 1)
}

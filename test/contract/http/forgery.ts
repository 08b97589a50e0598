/** Keys that were never issued, made as section 6 describes their form. */
import { crc32 } from 'node:zlib'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A key with this id and a right checksum, whose secret is no key's. */
export function forge(start: string, id: string, secret = 'Forged00'.repeat(4)): string {
  const unsigned = `${start}_${id}_${secret}`
  return unsigned + checksum(unsigned)
}

/** Six base62 digits of the CRC-32 of all before them (section 6), from zlib's CRC and not from core's. */
export function checksum(text: string): string {
  let rest = crc32(text)
  let sum = ''
  while (sum.length < 6) {
    sum = digits.charAt(rest % 62) + sum
    rest = Math.floor(rest / 62)
  }
  return sum
}

/** The same text but for one character, which becomes another one of its alphabet. */
export function tamper(text: string, index: number): string {
  const other = digits.charAt((digits.indexOf(text.charAt(index)) + 1) % 62)
  return text.slice(0, index) + other + text.slice(index + 1)
}

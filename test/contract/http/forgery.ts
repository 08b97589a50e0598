/** Keys that were never issued, made as section 6 describes their form. */
import { crc32 } from 'node:zlib'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A key with this id and a right checksum, whose secret is no key's. */
export function forge(start: string, id: string): string {
  const unsigned = `${start}_${id}_${'Forged00'.repeat(4)}`
  let rest = crc32(unsigned)
  let checksum = ''
  while (checksum.length < 6) {
    checksum = digits.charAt(rest % 62) + checksum
    rest = Math.floor(rest / 62)
  }
  return unsigned + checksum
}

/** The same text but for one character, which becomes another one of its alphabet. */
export function tamper(text: string, index: number): string {
  const other = digits.charAt((digits.indexOf(text.charAt(index)) + 1) % 62)
  return text.slice(0, index) + other + text.slice(index + 1)
}

/** An IP address: one unsigned 32-bit word for IPv4, four for IPv6, most significant first. */
export type IpAddress = readonly number[]

/** All addresses whose first `bits` bits are those of `network`. */
export interface IpRange {
  readonly network: IpAddress
  /** 0–32 for IPv4, 0–128 for IPv6. */
  readonly bits: number
}

/**
 * Parses the text forms of RFC 4291 §2.2, and dotted decimal without leading zeros. An IPv4-mapped IPv6 address
 * (`::ffff:192.0.2.1`) is returned as the IPv4 address. Zone ids are refused.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  const address = parseWords(text)
  return address !== undefined && isMapped(address) ? address.slice(3) : address
}

/**
 * Parses CIDR notation or a single address. Ranges within `::ffff:0:0/96` are ranges of IPv4.
 * @throws {RangeError} for other text, or bits set beyond the prefix. The message is the end of a
 * sentence about the range.
 */
export function parseCidr(text: string): IpRange {
  const slash = text.indexOf('/')
  const words = parseWords(slash < 0 ? text : text.slice(0, slash))
  const prefix = slash < 0 ? undefined : text.slice(slash + 1)
  if (words === undefined || (prefix !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(prefix))) {
    throw new RangeError('is no IPv4 or IPv6 address and no range in CIDR notation')
  }
  const bits = prefix === undefined ? words.length * 32 : Number(prefix)
  if (bits > words.length * 32) throw new RangeError(`has a prefix of more than ${words.length * 32} bits`)
  const network = words.map((word, index) => (word & mask(bits - index * 32)) >>> 0)
  const range = isMapped(network) && bits >= 96
    ? { network: network.slice(3), bits: bits - 96 }
    : { network, bits }
  if (words.some((word, index) => word !== network[index])) {
    throw new RangeError(`has bits set beyond its prefix: the network is ${formatCidr(range)}`)
  }
  return range
}

/** Whether an address is in a range. `::/0` contains no IPv4 address. */
export function rangeContains({ network, bits }: IpRange, address: IpAddress): boolean {
  if (network.length !== address.length) return false
  for (let index = 0; index * 32 < bits; index++) {
    if ((((network[index] as number) ^ (address[index] as number)) & mask(bits - index * 32)) !== 0) {
      return false
    }
  }
  return true
}

/**
 * The ranges of either list that are within one of the other: all addresses that both allow. An empty list allows any.
 * The time is linear in the lists.
 *
 * @returns In the notation of `one` where it has the range; `undefined` when no address is in both.
 * @throws {RangeError} as `parseCidr` does.
 */
export function intersectRanges(
  one: readonly string[],
  other: readonly string[],
): readonly string[] | undefined {
  if (one.length === 0) return other
  if (other.length === 0) return one
  const inOne = byCanonicalText(one)
  const inOther = byCanonicalText(other)
  const common = new Map<string, string>()
  for (const [canonical, text] of inOne) {
    if (enclosingRanges(parseCidr(text)).some((range) => inOther.has(range))) common.set(canonical, text)
  }
  if (common.size === inOne.size) return one
  for (const [canonical, text] of inOther) {
    if (common.has(canonical)) continue
    if (enclosingRanges(parseCidr(text)).some((range) => inOne.has(range))) common.set(canonical, text)
  }
  return common.size === 0 ? undefined : [...common.values()]
}

/** Ranges without duplicates, by a canonical text: equal ranges have the same one, whatever their notation. */
function byCanonicalText(ranges: readonly string[]): Map<string, string> {
  return new Map(ranges.map((text) => [canonicalRange(parseCidr(text)), text]))
}

function canonicalRange({ network, bits }: IpRange): string {
  return `${network.join('.')}/${bits}`
}

/** A range and all that contain it, as canonical text: at most 129. */
function enclosingRanges({ network, bits }: IpRange): string[] {
  return Array.from({ length: bits + 1 }, (_, length) => {
    const words = network.map((word, index) => (word & mask(length - index * 32)) >>> 0)
    return canonicalRange({ network: words, bits: length })
  })
}

/** A word whose first `bits` bits are set. Shifts are modulo 32, so both ends are special cases. */
function mask(bits: number): number {
  return bits <= 0 ? 0 : bits >= 32 ? -1 : -1 << (32 - bits)
}

function isMapped(words: IpAddress): boolean {
  return words.length === 4 && words[0] === 0 && words[1] === 0 && words[2] === 0xffff
}

function parseWords(text: string): IpAddress | undefined {
  if (text.includes(':')) return parseIPv6(text)
  const word = parseIPv4(text)
  return word === undefined ? undefined : [word]
}

function parseIPv4(text: string): number | undefined {
  if (text.length > 15) return undefined
  const octets = text.split('.')
  if (octets.length !== 4) return undefined
  let word = 0
  for (const octet of octets) {
    // A leading zero is octal to some readers and decimal to others (RFC 6943 §3.1.1).
    if (!/^(?:0|[1-9]\d{0,2})$/.test(octet) || Number(octet) > 255) return undefined
    word = word * 256 + Number(octet)
  }
  return word
}

function parseIPv6(text: string): IpAddress | undefined {
  // 45: eight groups, the last two in dotted decimal.
  if (text.length > 45) return undefined
  const [head = '', tail, more] = text.split('::')
  if (more !== undefined) return undefined
  const left = parseGroups(head, tail === undefined)
  const right = tail === undefined ? [] : parseGroups(tail, true)
  if (left === undefined || right === undefined) return undefined
  const missing = 8 - left.length - right.length
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...left, ...new Array<number>(missing).fill(0), ...right]
  return [0, 2, 4, 6].map((index) => (groups[index] ?? 0) * 0x10000 + (groups[index + 1] ?? 0))
}

/** @param last Whether these groups end the address, where dotted decimal may replace two of them. */
function parseGroups(text: string, last: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const groups: number[] = []
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(parseInt(part, 16))
      continue
    }
    const word = last && index === parts.length - 1 ? parseIPv4(part) : undefined
    if (word === undefined) return undefined
    groups.push(word >>> 16, word & 0xffff)
  }
  return groups
}

function formatCidr({ network, bits }: IpRange): string {
  const groups = network.flatMap((word) => [(word >>> 16).toString(16), (word & 0xffff).toString(16)])
  const host = network.length === 1 ? network[0] : `[${groups.join(':')}]`
  // The host of a URL is serialised as in RFC 5952, and a number as in dotted decimal (WHATWG URL §3.5).
  return `${new URL(`http://${host}`).hostname.replace(/[[\]]/g, '')}/${bits}`
}

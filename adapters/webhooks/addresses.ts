import { isIP } from 'node:net'
import { parseCidr, parseIpAddress, rangeContains } from '../../core/lib/ip-address.ts'

/** RFC 6890: this network, private, shared, loopback, link-local, protocol, documentation, benchmark, multicast, reserved. */
const privateRanges = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/3'],
  // Of the global unicast addresses: Teredo and other protocols, and documentation.
  ...['2001::/23', '2001:db8::/32', '3fff::/20'],
].map(parseCidr)
const globalUnicast = parseCidr('2000::/3')
const [nat64, sixToFour] = [parseCidr('64:ff9b::/96'), parseCidr('2002::/16')]

/** Whether an address is reachable from everywhere, by its text. IPv6 addresses that contain an IPv4 address are as public as that. */
export function isPublicAddress(text: string): boolean {
  const address = parseIpAddress(text)
  if (address === undefined) return false
  const [first = 0, second = 0, , last = 0] = address
  const isPublic = (words: readonly number[]) => !privateRanges.some((range) => rangeContains(range, words))
  if (rangeContains(nat64, address)) return isPublic([last])
  if (rangeContains(sixToFour, address)) return isPublic([((first << 16) | (second >>> 16)) >>> 0])
  return isPublic(address) && (address.length === 1 || rangeContains(globalUnicast, address))
}

/** Whether a webhook may have this URL. Names are resolved, and checked again, for every connection. */
export function isPublicUrl({ protocol, hostname }: Pick<URL, 'protocol' | 'hostname'>): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return protocol === 'https:' && isPublicAddress(host)
  return protocol === 'https:' && !/(?:^|\.)localhost\.?$/.test(host)
}

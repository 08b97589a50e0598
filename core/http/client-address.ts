import { type IpAddress, parseIpAddress } from '../lib/ip-address.ts'
import { createLruCache } from '../lib/lru.ts'
import type { HttpRequest } from './message.ts'

/** The address of a client, which may be unknown or invalid. */
export interface ClientAddress {
  /** The address as the runtime or a proxy wrote it, without port and zone; `undefined` unless it could be parsed. */
  readonly text: string | undefined
  /** The parsed address; `undefined` if unknown or invalid. */
  readonly address: IpAddress | undefined
  /**
   * What limits count by: an IPv4 address, or the /64 of an IPv6 address, the smallest network that a customer gets
   * (RFC 6177 §2). All invalid addresses count as one. `undefined` if unknown.
   */
  readonly subject: string | undefined
}

const unknownAddress: ClientAddress = { text: undefined, address: undefined, subject: undefined }
const invalidAddress: ClientAddress = { ...unknownAddress, subject: 'unreadable' }

/**
 * The address that the host gives, the peer of the connection or, behind proxies, the first hop from the right of
 * `X-Forwarded-For` that none of them added. The client controls everything left of it.
 */
export function clientAddressOf(request: HttpRequest, trustedProxies: number): ClientAddress {
  const isDirect = trustedProxies === 0 || request.isClientAddress === true
  const forwarded = isDirect ? undefined : request.header('x-forwarded-for')
  const hops = forwarded === undefined ? [] : forwarded.split(',').map((hop) => hop.trim())
  return parseClientAddress(
    hops.length === 0 ? request.address : hops[Math.max(0, hops.length - trustedProxies)],
  )
}

/** Parsed addresses by their text: to parse one takes as long as a cached response. A text may fill a header field. */
const parsedHops = createLruCache<ClientAddress>(65_536, (_, hop) => hop.length)

/** Parses the address of a peer or an entry of `X-Forwarded-For`. Never throws: invalid text has no address. */
export function parseClientAddress(hop: string | undefined): ClientAddress {
  // A host may pass anything as the address.
  if (typeof hop !== 'string') return unknownAddress
  const known = parsedHops.get(hop)
  if (known !== undefined) return known
  // On Bun, a part of a header field keeps all of it.
  const copy = [...hop].join('')
  const text = stripPort(copy).replace(zonePattern, '')
  const address = parseIpAddress(text)
  const parsed = address ? { text, address, subject: address.slice(0, 2).join(':') } : invalidAddress
  parsedHops.set(copy, parsed)
  return parsed
}

/** The network interface in `fe80::1%eth0` (RFC 4007 §11.2). */
const zonePattern = /%.*/s

/** The address without a port: some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711` (RFC 7239 §6). */
function stripPort(hop: string): string {
  const bracketed = /^\[(.*)\](?::\d+)?$/.exec(hop)
  if (bracketed !== null) return bracketed[1] ?? hop
  return /^[\d.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(':')) : hop
}

import { type Address, parseAddress } from '../policy/address.ts'
import type { Exchange } from './exchange.ts'

/** Where a request comes from. */
export interface Client {
  /** The address as the runtime or a proxy wrote it, without port and zone; `undefined` unless it could be parsed. */
  readonly text: string | undefined
  /** `undefined` when nobody tells, or what they tell is no address. */
  readonly address: Address | undefined
  /**
   * Whom limits count: an IPv4 address, or the /64 of an IPv6 one, which is the least that one customer of a
   * network is given (RFC 6177 §2). All that cannot be parsed count as one. `undefined` where nobody tells.
   */
  readonly subject: string | undefined
}

const untold: Client = { text: undefined, address: undefined, subject: undefined }
const unreadable: Client = { ...untold, subject: 'unreadable' }

/**
 * The peer of the connection or, behind proxies, the first hop from the right of `X-Forwarded-For` that none of
 * them added. What stands left of it was written by the client.
 *
 * @param trustedProxies How many proxies stand in front, 0 or more.
 */
export function clientOf(exchange: Exchange, trustedProxies: number): Client {
  const forwarded = trustedProxies === 0 ? undefined : exchange.header('x-forwarded-for')
  const hops = forwarded === undefined ? [] : forwarded.split(',').map((hop) => hop.trim())
  return readClient(hops.length === 0 ? exchange.address : hops[Math.max(0, hops.length - trustedProxies)])
}

/** The client whose address was written as `hop`; `undefined` where nobody tells. */
export function readClient(hop: string | undefined): Client {
  if (hop === undefined) return untold
  const text = stripPort(hop).replace(zone, '')
  const address = parseAddress(text)
  return address === undefined ? unreadable : { text, address, subject: address.slice(0, 2).join(':') }
}

/** Names an interface of this machine (RFC 4007 §11.2): `fe80::1%eth0`. */
const zone = /%.*/s

/** Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711` (RFC 7239 §6). */
function stripPort(hop: string): string {
  const bracketed = /^\[(.*)\](?::\d+)?$/.exec(hop)
  if (bracketed !== null) return bracketed[1] ?? hop
  return /^[\d.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(':')) : hop
}

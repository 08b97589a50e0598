/** The addresses of receivers: which ones are public, and what their names resolve to. */
import dns from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP, type LookupFunction } from 'node:net'
import process from 'node:process'
import { parseCidr, parseIpAddress, rangeContains } from '../../core/lib/ip-address.ts'

/**
 * RFC 6890: this network, private, shared, loopback, link-local, protocol, documentation,
 * benchmark, multicast, reserved.
 */
const privateRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  // Of the global unicast addresses: Teredo and other protocols, and documentation.
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
].map(parseCidr)
const globalUnicast = parseCidr('2000::/3')
const nat64 = parseCidr('64:ff9b::/96')
const sixToFour = parseCidr('2002::/16')

/**
 * Whether an address is reachable from everywhere, by its text. IPv6 addresses that contain an IPv4
 * address are as public as that.
 */
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

/** Why an attempt failed, in words for operators. */
export class AttemptError extends Error {
  override readonly name = 'AttemptError'
}

/** Milliseconds for the name servers. */
const timeoutMs = 5_000
const hostsFile = process.platform === 'win32'
  ? `${process.env['SystemRoot']}\\System32\\drivers\\etc\\hosts`
  : '/etc/hosts'

/**
 * A `lookup` for sockets that returns allowed addresses only. It uses no thread, as `dns.lookup` would: a few silent
 * name servers would keep connections of stores, files and cryptography waiting. Each name is resolved once at a time.
 *
 * @param refusal The error if a name has no allowed address.
 */
export function createLookup(isAllowed: (address: string) => boolean, refusal: () => Error): LookupFunction {
  const pending = new Map<string, Promise<readonly string[]>>()
  return (hostname, options, callback) => {
    const resolving = pending.get(hostname) ?? resolve(hostname).finally(() => pending.delete(hostname))
    pending.set(hostname, resolving)
    resolving.then((addresses) => {
      const allowed = addresses.filter(isAllowed).map((address) => ({ address, family: isIP(address) }))
      const [first] = allowed
      if (first === undefined) callback(refusal(), '')
      else if (options.all) callback(null, allowed)
      else callback(null, first.address, first.family)
    }, (error) => callback(error, ''))
  }
}

async function resolve(hostname: string): Promise<readonly string[]> {
  const listed = readHosts(hostname)
  if (listed.length > 0) return listed
  // One for each look-up: the name servers of this machine may have changed.
  const resolver = new dns.promises.Resolver()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    resolver.cancel()
  }, timeoutMs)
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  clearTimeout(timer)
  const found = [v4, v6].flatMap((result) => result.status === 'fulfilled' ? result.value : [])
  if (found.length > 0) return found
  throw isLate
    ? new AttemptError(`its name servers did not respond within ${timeoutMs / 1_000} s`)
    : (v4 as PromiseRejectedResult).reason
}

/** Addresses of a name in the hosts file, which takes precedence over name servers. */
function readHosts(hostname: string): string[] {
  try {
    const lines = readFileSync(hostsFile, 'utf8').split('\n').map((line) => line.replace(/#.*/, '').trim())
    const entries = lines.map((line) => line.toLowerCase().split(/\s+/))
    return entries.filter(([, ...names]) => names.includes(hostname)).map(([address]) => address!)
  } catch {
    return []
  }
}

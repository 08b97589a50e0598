/** Resolves the names of receivers. */
import dns from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP, type LookupFunction } from 'node:net'
import process from 'node:process'

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
 * A `lookup` for sockets that returns allowed addresses only. It uses no thread, as `dns.lookup` would: a few silent name
 * servers would keep connections of stores, files and cryptography waiting. Each name is resolved once at a time.
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

/** Addresses that this machine has for a name, whatever name servers say. */
function readHosts(hostname: string): string[] {
  try {
    const lines = readFileSync(hostsFile, 'utf8').split('\n').map((line) => line.replace(/#.*/, '').trim())
    const entries = lines.map((line) => line.toLowerCase().split(/\s+/))
    return entries.filter(([, ...names]) => names.includes(hostname)).map(([address]) => address!)
  } catch {
    return []
  }
}

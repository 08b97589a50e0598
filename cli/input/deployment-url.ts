import { usageFailure } from '../failure.ts'

/**
 * Where a deployment is.
 *
 * @throws {Failure} exit code 2 unless it is an address and no more than that.
 */
export function parseDeploymentUrl(text: string): URL {
  const base = URL.parse(text)
  if (base?.protocol !== 'https:' && base?.protocol !== 'http:') {
    throw usageFailure('--url has to be an http:// or https:// address, such as https://api.example.')
  }
  if (base.username || base.password || text.includes('?') || text.includes('#')) {
    throw usageFailure('--url is only where the deployment is: it has no credentials, query or fragment.')
  }
  return base
}

/** Whether it is this machine: what is sent there does not leave it. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' ||
    /^127\.[\d.]+$/.test(hostname)
}

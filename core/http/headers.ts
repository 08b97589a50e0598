import type { Sha256 } from '../lib/digest.ts'

/** The request header that makes a signup safe to repeat. */
export const IDEMPOTENCY_HEADER = 'Idempotency-Key'

/** Names on the wire that contain the name of the service. */
export interface ServiceNames {
  /** Path segment and realm. */
  readonly name: string
  /** Name of the header of a key as documented: `X-Service-Partner-Key`. */
  readonly keyHeader: string
  /** Name of the header of the version as responses write it: `Service-Version`. */
  readonly versionHeader: string
  readonly keyHeaderLowerCase: string
  readonly versionHeaderLowerCase: string
}

/** @throws {RangeError} unless `name` is lower-case letters, digits and `-`, a letter first. */
export function createServiceNames(name: string): ServiceNames {
  if (!/^[a-z][a-z0-9-]*$/.test(name)) {
    const rule = 'use lower-case letters, digits and "-", a letter first'
    throw new RangeError(`The service can't be named ${JSON.stringify(name)}: ${rule}.`)
  }
  const title = name.split('-').map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('-')
  const keyHeader = `X-${title}-Partner-Key`
  const versionHeader = `${title}-Version`
  return {
    name,
    keyHeader,
    versionHeader,
    keyHeaderLowerCase: keyHeader.toLowerCase(),
    versionHeaderLowerCase: versionHeader.toLowerCase(),
  }
}

/**
 * Whether an `Accept` field admits a media type (RFC 9110 §12.5.1): the most specific range that covers it
 * decides, and a weight of 0 excludes. Parameters of a range are ignored.
 *
 * @param accept The field's value; absent or an empty list admits everything.
 * @param type Lower case, without parameters.
 */
export function accepts(accept: string | undefined, type: string): boolean {
  return accept === undefined || accept === '*/*' || accept === type || acceptWeight(accept, type) > 0
}

/** Whether an `Accept` field gives a media type more weight than another, or names it and gives it as much. */
export function prefers(accept = '', type: string, other: string): boolean {
  const margin = acceptWeight(accept, type) - acceptWeight(accept, other)
  return margin > 0 || margin === 0 && weights(accept).some(([name, weight]) => name === type && weight > 0)
}

function acceptWeight(accept: string, type: string): number {
  const ranges = weights(accept)
  if (ranges.length === 0) return 1
  // From the least to the most specific range that covers the type.
  const covering = ['*/*', `${type.slice(0, type.indexOf('/'))}/*`, type]
  let specificity = -1
  let weight = 0
  for (const [name, quality] of ranges) {
    const covers = covering.indexOf(name)
    if (covers < 0 || covers < specificity) continue
    weight = covers === specificity ? Math.max(weight, quality) : quality
    specificity = covers
  }
  return weight
}

/** Whether an `Accept-Encoding` field gives gzip, or `*`, at least the weight of `identity` (RFC 9110 §12.5.3). */
export function prefersGzip(acceptEncoding: string | undefined): boolean {
  const listed = new Map(weights(acceptEncoding ?? ''))
  const gzip = listed.get('gzip') ?? listed.get('x-gzip') ?? listed.get('*') ?? 0
  return gzip > 0 && gzip >= (listed.get('identity') ?? 0)
}

/**
 * The elements of a list, in lower case and without parameters, each with its weight (RFC 9110 §12.4.2). Empty ones
 * do not count (§5.6.1), and quoted strings are not read.
 */
function weights(field: string): [name: string, weight: number][] {
  const elements = field.replace(quotedString, '').toLowerCase().split(',')
  return elements.filter((element) => element.trim() !== '').map((element) => {
    const [name = '', ...parameters] = element.split(';').map((part) => part.trim())
    return [name, weightOf(parameters)]
  })
}

/** RFC 9110 §5.6.4, closed or not: it matches at every quote, so that it never backtracks. */
const quotedString = /"(?:[^"\\]|\\[^])*\\?"?/g

function weightOf(parameters: readonly string[]): number {
  const quality = parameters.find((parameter) => /^q\s*=/.test(parameter))
  if (quality === undefined) return 1
  const value = Number(quality.slice(quality.indexOf('=') + 1))
  return Number.isNaN(value) ? 0 : value
}

/** A strong entity tag (RFC 9110 §8.8.3): half a SHA-256, quoted. */
export function entityTag(body: string, sha256: Sha256): string {
  return `"${sha256(body).slice(0, 32)}"`
}

/** Whether `If-None-Match` names the tag (RFC 9110 §13.1.2, compared weakly). */
export function matchesNone(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch === tag || ifNoneMatch.trim() === '*') return true
  for (const [, opaque] of ifNoneMatch.matchAll(/(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g)) {
    if (opaque === tag) return true
  }
  return false
}

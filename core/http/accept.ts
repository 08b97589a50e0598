/**
 * Whether an `Accept` field admits a media type (RFC 9110 §12.5.1): the most specific range that covers it
 * decides, and a weight of 0 excludes. Parameters of a range are not looked at.
 *
 * @param accept The field's value; absent or empty admits everything.
 * @param type Lower case, without parameters.
 */
export function accepts(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === type) return true
  const group = `${type.slice(0, type.indexOf('/'))}/*`
  let specificity = 0
  let weight = 0
  for (const [name, quality] of weights(accept)) {
    const covers = name === type ? 3 : name === group ? 2 : name === '*/*' ? 1 : 0
    if (covers === 0 || covers < specificity) continue
    weight = covers === specificity ? Math.max(weight, quality) : quality
    specificity = covers
  }
  return weight > 0
}

/**
 * Whether an `Accept-Encoding` field prefers gzip to no coding at all (RFC 9110 §12.5.3): it does when gzip, or `*` in
 * its place, has a weight that `identity` does not exceed. An absent field prefers no coding.
 */
export function prefersGzip(acceptEncoding: string | undefined): boolean {
  const listed = new Map(weights(acceptEncoding ?? ''))
  const gzip = listed.get('gzip') ?? listed.get('x-gzip') ?? listed.get('*') ?? 0
  return gzip > 0 && gzip >= (listed.get('identity') ?? 0)
}

/** The elements of a list, in lower case and without parameters, each with its weight (RFC 9110 §12.4.2). */
function weights(field: string): [name: string, weight: number][] {
  return field.toLowerCase().split(',').map((element) => {
    const [name = '', ...parameters] = element.split(';').map((part) => part.trim())
    return [name, weightOf(parameters)]
  })
}

function weightOf(parameters: readonly string[]): number {
  const quality = parameters.find((parameter) => /^q\s*=/.test(parameter))
  if (quality === undefined) return 1
  const value = Number(quality.slice(quality.indexOf('=') + 1))
  return Number.isNaN(value) ? 0 : value
}

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
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim())
    const covers = name === type ? 3 : name === group ? 2 : name === '*/*' ? 1 : 0
    if (covers === 0 || covers < specificity) continue
    const quality = weightOf(parameters)
    weight = covers === specificity ? Math.max(weight, quality) : quality
    specificity = covers
  }
  return weight > 0
}

function weightOf(parameters: readonly string[]): number {
  const quality = parameters.find((parameter) => /^q\s*=/.test(parameter))
  if (quality === undefined) return 1
  const value = Number(quality.slice(quality.indexOf('=') + 1))
  return Number.isNaN(value) ? 0 : value
}

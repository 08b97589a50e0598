/** The value below which the share `rank` (0–1) of the values lies; of an even number, no mean is made. */
export function quantile(values: readonly number[], rank: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(rank * sorted.length))]!
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Three significant digits, thousands apart. */
export function figure(value: number, unit: string): string {
  const text = value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)))
  return `${text} ${unit}`
}

/** How many times better than another one. */
export function times(ratio: number): string {
  return `${ratio.toFixed(2)} ×`
}

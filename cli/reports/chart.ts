/** Small charts in text, of block characters that are one column wide each. */

const heights = ' ▁▂▃▄▅▆▇█'
const widths = ' ▏▎▍▌▋▊▉█'

/** One character for each value, as high as its share of the greatest value: `▁` for 0, and `▂` to `█`. */
export function sparkline(values: readonly number[]): string {
  return toSteps(values, 7).map((step) => heights[step + 1]).join('')
}

/** One horizontal bar for each value, as long as its share of the greatest value, which has `width` columns. */
export function bars(values: readonly number[], width: number): string[] {
  return toSteps(values, width * 8).map((step) => draw(step, width, widths).join('').trimEnd())
}

/**
 * The lines, from the top, of a chart with one vertical bar for each value. The greatest value has `height` lines.
 * @param cell Columns of each bar; from 2, the last one is a gap.
 */
export function columns(values: readonly number[], height: number, cell: number): string[] {
  const drawn = toSteps(values, height * 8).map((step) => draw(step, height, heights).reverse())
  return Array.from(
    { length: height },
    (_, line) => widen(drawn.map((characters) => characters[line]).join(''), cell),
  )
}

/** Widens each character of a chart to `cell` columns; from 2, the last one is a gap. */
export function widen(characters: string, cell: number): string {
  const [width, gap] = cell < 2 ? [1, ''] : [cell - 1, ' ']
  return [...characters].map((character) => character.repeat(width) + gap).join('').trimEnd()
}

/** Shares of the greatest value in steps of 1/`most`. A value above 0 has one step at least, so that it is visible. */
function toSteps(values: readonly number[], most: number): number[] {
  const greatest = values.reduce((one, other) => Math.max(one, other), 0)
  return values.map((value) => value > 0 ? Math.max(1, Math.round(value / greatest * most)) : 0)
}

/** `steps` eighths as characters: full ones, the one for the rest, and empty ones. */
function draw(steps: number, length: number, characters: string): string[] {
  return Array.from({ length }, (_, place) => characters[Math.min(8, Math.max(0, steps - place * 8))]!)
}

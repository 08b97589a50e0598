/** Charts in text: in proportion, and as wide and high as they are asked to be. */
import t from 'tap'
import { bars, columns, sparkline, widen } from '../../cli/reports/text.ts'
import { displayWidth } from '../../cli/output/text.ts'

const values = [0, 1, 250, 500, 1_000]

t.test('a sparkline has one character for each value', (t) => {
  t.equal(sparkline(values), '▁▂▃▅█')
  t.equal(sparkline([0, 0]), '▁▁')
  t.equal(sparkline([]), '')
  t.equal(widen(sparkline(values), 3), '▁▁ ▂▂ ▃▃ ▅▅ ██')
  t.equal(widen('▁█', 1), '▁█')
  t.end()
})

t.test('bars are in proportion, and what is above 0 is visible', (t) => {
  t.strictSame(bars(values, 4), ['', '▏', '█', '██', '████'])
  t.strictSame(bars([0, 0], 10), ['', ''])
  t.strictSame(bars([], 10), [])
  for (const width of [1, 7, 40]) {
    const lengths = bars(values.map((value) => value * 1e9), width).map(displayWidth)
    t.equal(Math.max(...lengths), width)
    t.strictSame(lengths, [...lengths].sort((one, other) => one - other))
  }
  t.end()
})

t.test('columns have the same height at every width', (t) => {
  t.strictSame(columns(values, 2, 1), ['    █', ' ▁▄██'])
  t.strictSame(columns(values, 2, 3), ['            ██', '   ▁▁ ▄▄ ██ ██'])
  t.strictSame(columns([0], 3, 2), ['', '', ''])
  t.end()
})

import fc from 'fast-check'

/** Text of any code points. fast-check's own unit `binary` has the same ones, but takes two seconds to set up. */
export function anyText(constraints: fc.StringConstraints = {}): fc.Arbitrary<string> {
  const point = fc.oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0xffff }),
    fc.integer({ min: 0x10000, max: 0x10ffff }),
  )
  return fc.string({ ...constraints, unit: point.map((value) => String.fromCodePoint(value)) })
}

import fc from 'fast-check'

/** Text of any code points. fast-check's own unit `binary` is equivalent, but takes two seconds to set up. */
export function anyText(constraints: fc.StringConstraints = {}): fc.Arbitrary<string> {
  const point = fc.oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0xffff }),
    fc.integer({ min: 0x10000, max: 0x10ffff }),
  )
  return fc.string({ ...constraints, unit: point.map((value) => String.fromCodePoint(value)) })
}

const part = anyText({ maxLength: 10 }).map(encodeURIComponent)

/** Absolute `http` and `https` URLs. fast-check's `webUrl` takes two seconds to set up. */
export const anyUrl: fc.Arbitrary<string> = fc.record({
  scheme: fc.constantFrom('http', 'https', 'HTTPS'),
  host: fc.constantFrom(
    'a.example',
    'xn--stra-0ra.example:8080',
    '192.0.2.1',
    '[2001:db8::1]',
    'user@b.example',
  ),
  path: fc.array(part, { maxLength: 3 }),
  more: fc.constantFrom('', '/', '?', '?a=b&c', '#', '#d'),
  end: part,
}).map(({ scheme, host, path, more, end }) =>
  `${scheme}://${host}${path.map((one) => `/${one}`).join('')}${more}${more.length > 1 ? end : ''}`
)

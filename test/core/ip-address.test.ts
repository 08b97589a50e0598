import { BlockList, isIP } from 'node:net'
import fc from 'fast-check'
import { test } from 'tap'
import { parseClientAddress } from '../../core/http/client-address.ts'
import { parseCidr, parseIpAddress, rangeContains } from '../../core/lib/ip-address.ts'

const includes = (range: string, address: string): boolean => {
  const parsed = parseIpAddress(address)
  if (parsed === undefined) throw new Error(`not an address: ${address}`)
  return rangeContains(parseCidr(range), parsed)
}

/** Few distinct bits, so that ranges often include addresses; all text forms that `:`, `::` and dots allow. */
const group = fc.constantFrom('0', '1', 'ffff', '8000', '00ff', 'ABCD')
const ipv6 = fc.oneof(
  fc.ipV6(),
  fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':')),
  fc.tuple(fc.array(group, { maxLength: 4 }), fc.array(group, { maxLength: 3 }))
    .map(([left, right]) => `${left.join(':')}::${right.join(':')}`),
).filter((text) => isIP(text) === 6)

test('the same text is an address as in node:net, except for zones', (t) => {
  const nearly = fc.array(
    fc.constantFrom('0', '1', 'f', 'ffff', '255', '256', '01', ':', '::', '.', '1.2.3.4', ' '),
    { maxLength: 17 },
  ).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(nearly, ipv6, fc.ipV4(), fc.string()), (text) => {
      fc.pre(!text.includes('%'))
      return (parseIpAddress(text) !== undefined) === (isIP(text) !== 0)
    }),
    { numRuns: 1_000 },
  )
  const tricky = [
    '1:2:3:4:5:6:7:8::',
    '::1:2:3:4:5:6:7:8',
    '1:2:3:4::5:6:7:8',
    '1:2:3:4:5:6:7::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    ':::',
    ':1::2',
    '1::2:',
    '1.2.3.4::',
    '1.2.3.4::1',
    '::1.2.3.4:5',
    '1:2:3:4:5:6:1.2.3.4',
    '1:2:3:4:5:6:7:1.2.3.4',
    '::12345',
    '::ffff:1.2.3.04',
    '1.2.3',
    '1.2.3.4.5',
    'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255',
    '1.2.3.4\n',
    '1.2.3.-4',
    '0x1.2.3.4',
    '[::1]',
  ]
  for (const text of tricky) {
    t.equal(parseIpAddress(text) !== undefined, isIP(text) !== 0, JSON.stringify(text))
  }
  t.end()
})

test('a hop with port or zone has the address in it, also when it is parsed again', (t) => {
  const hops = fc.oneof(
    fc.ipV4().map((text) => ({ text, forms: [text, `${text}:4711`] })),
    ipv6.map((text) => ({ text, forms: [text, `[${text}]`, `[${text}]:4711`, `${text}%eth0`] })),
    fc.string().map((text) => ({ text, forms: [text] })).filter(({ text }) => !/[%:\]]/.test(text)),
  )
  fc.assert(fc.property(fc.array(hops, { maxLength: 4 }), (hops) => {
    for (const { text, forms } of [...hops, ...hops]) {
      for (const form of forms) t.strictSame(parseClientAddress(form).address, parseIpAddress(text))
    }
  }))
  // Longer than what is kept.
  const long = `fe80::1%${'x'.repeat(40_000)}`
  t.strictSame([parseClientAddress(long), parseClientAddress(long)].map(({ text }) => text), [
    'fe80::1',
    'fe80::1',
  ])
  t.end()
})

test('IPv4 ranges include the same addresses as in node:net', (t) => {
  const word = fc.oneof(fc.nat(0xffffffff), fc.constantFrom(0, 0x7fffffff, 0x80000000, 0xffffffff))
  const dotted = (value: number) =>
    [value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255].join('.')
  fc.assert(
    fc.property(word, fc.nat(32), word, fc.nat(32), (base, bits, other, flip) => {
      const mask = bits === 0 ? 0 : -1 << (32 - bits)
      const network = dotted((base & mask) >>> 0)
      // Half of them differ from the network in one bit.
      const address = dotted(flip === 32 ? other : (base ^ 1 << flip) >>> 0)
      const list = new BlockList()
      list.addSubnet(network, bits)
      const expected = list.check(address)
      return includes(`${network}/${bits}`, address) === expected &&
        includes(`::ffff:${network}/${bits + 96}`, address) === expected &&
        includes(`${network}/${bits}`, `::FFFF:${address}`) === expected
    }),
    { numRuns: 500 },
  )
  t.end()
})

test('IPv6 ranges include the same addresses as in node:net', (t) => {
  const bytes = fc.array(fc.oneof(fc.constant(0), fc.nat(255)), { minLength: 16, maxLength: 16 })
  const written = (parts: readonly number[]) =>
    Array.from({ length: 8 }, (_, index) => ((parts[2 * index]! << 8) | parts[2 * index + 1]!).toString(16))
      .join(':')
  const isMapped = (parts: readonly number[]) =>
    parts.slice(0, 10).every((byte) => byte === 0) && parts[10] === 255 && parts[11] === 255
  fc.assert(
    fc.property(bytes, fc.nat(128), bytes, fc.nat(128), (base, bits, other, flip) => {
      const address = flip === 128
        ? other
        : base.map((byte, index) => index === flip >> 3 ? byte ^ (128 >> (flip & 7)) : byte)
      const network = base.map((byte, index) =>
        byte & (bits >= index * 8 + 8 ? 255 : bits <= index * 8 ? 0 : 255 << (8 - (bits - index * 8)))
      )
      fc.pre(!isMapped(address) && !isMapped(network))
      const list = new BlockList()
      list.addSubnet(written(network), bits, 'ipv6')
      return includes(`${written(network)}/${bits}`, written(address)) ===
        list.check(written(address), 'ipv6')
    }),
    { numRuns: 500 },
  )
  t.end()
})

test('ranges include only addresses of their family, and a mapped address is IPv4', (t) => {
  t.notOk(includes('::/0', '192.0.2.1'))
  t.notOk(includes('::/0', '::ffff:192.0.2.1'))
  t.notOk(includes('0.0.0.0/0', '::1'))
  t.notOk(includes('0.0.0.0/0', '::192.0.2.1'), 'the deprecated IPv4-compatible form is IPv6')
  t.ok(includes('::ffff:0:0/96', '192.0.2.1'))
  t.ok(includes('192.0.2.1', '::ffff:c000:201'))
  t.end()
})

test('an invalid range is refused, and one with host bits with the intended network', (t) => {
  const refused: [string, RegExp][] = [
    ['10.1.2.3/8', /the network is 10\.0\.0\.0\/8$/],
    ['255.255.255.255/0', /the network is 0\.0\.0\.0\/0$/],
    ['2001:db8:0:0:1::1/64', /the network is 2001:db8::\/64$/],
    ['::ffff:10.1.2.3/104', /the network is 10\.0\.0\.0\/8$/],
    ['10.0.0.0/33', /more than 32 bits/],
    ['::/129', /more than 128 bits/],
    ['fe80::1%eth0', /is no IPv4 or IPv6 address/],
    ['fe80::%eth0/64', /is no IPv4 or IPv6 address/],
    ['10.0.0.0/08', /is no IPv4/],
    ['10.0.0.0/', /is no IPv4/],
    ['10.0.0.0/8/8', /is no IPv4/],
    ['10.0.0/8', /is no IPv4/],
    ['10.0.0.0/+8', /is no IPv4/],
    [' 10.0.0.0/8', /is no IPv4/],
    ['', /is no IPv4/],
  ]
  for (const [text, message] of refused) {
    t.throws(() => parseCidr(text), { name: 'RangeError', message }, text)
  }
  t.end()
})

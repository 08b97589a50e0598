import fc from 'fast-check'
import t from 'tap'
import { sha256 } from '../../adapters/digest.ts'
import { readJson } from '../../core/http/body.ts'
import { createCursors } from '../../core/http/cursor.ts'
import { accepts } from '../../core/http/headers.ts'
import { Problem } from '../../core/http/problem.ts'
import { readQuery } from '../../core/http/query.ts'
import { containsKey } from '../../core/http/redact.ts'
import { extractKeyId, hasValidChecksum, isWellFormedKey, mintKey } from '../../core/keys/format.ts'
import { createRequestIds } from '../../core/lib/ids.ts'
import { createLruCache } from '../../core/lib/lru.ts'
import { checksum } from '../contract/http/forgery.ts'
import { anyText } from '../support/any-text.ts'

const encoder = new TextEncoder()
const prefixes = fc.stringMatching(/^[a-z][a-z0-9]{1,9}$/)
const environments = fc.constantFrom('live' as const, 'test' as const)

t.test('every generated key has the format of the contract and ends with its checksum', (t) => {
  fc.assert(fc.property(prefixes, environments, (prefix, environment) => {
    const { id, text, hint } = mintKey(prefix, environment)
    const form = new RegExp(`^${prefix}_${environment}_${id}_[0-9A-Za-z]{38}$`)
    return form.test(text) && /^[0-9A-Za-z]{12}$/.test(id) && text.endsWith(hint) && hint.length === 4 &&
      text.slice(-6) === checksum(text.slice(0, -6)) && hasValidChecksum(text) &&
      isWellFormedKey(text, prefix) && extractKeyId(text, prefix) === id && containsKey(`<${text}>`)
  }))
  // The regular expression of section 6.
  const scanner = /\bspk_(live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}\b/
  const { text } = mintKey('spk', 'test')
  t.equal(scanner.exec(`key: ${text}, `)?.[0], text)
  t.end()
})

t.test('only an unchanged key with its own prefix is well-formed', (t) => {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_- é\n'
  const key = fc.tuple(prefixes, environments)
    .map(([prefix, environment]) => ({ prefix, text: mintKey(prefix, environment).text }))
  fc.assert(
    fc.property(
      key,
      prefixes,
      fc.nat(),
      fc.constantFrom(...alphabet),
      ({ prefix, text }, foreign, at, other) => {
        const place = at % text.length
        fc.pre(text[place] !== other && prefix !== foreign)
        const changed = text.slice(0, place) + other + text.slice(place + 1)
        const wrong = [changed, `${text}0`, ` ${text}`, `${text}\n`, text.slice(1)]
        return !isWellFormedKey(text, foreign) && !wrong.some((text) => isWellFormedKey(text, prefix))
      },
    ),
    { numRuns: 500 },
  )
  fc.assert(fc.property(anyText(), prefixes, (text, prefix) => !isWellFormedKey(text, prefix)))
  t.end()
})

t.test('all characters are equally likely in keys', (t) => {
  const counts = new Map<string, number>()
  for (let made = 0; made < 2_000; made++) {
    const { text } = mintKey('spk', 'live')
    for (const character of text.slice(9, 21) + text.slice(22, 54)) {
      counts.set(character, (counts.get(character) ?? 0) + 1)
    }
  }
  const expected = 2_000 * 44 / 62
  // Modulo bias of a byte would make eight characters a quarter more likely, which is nine deviations. Seven occur by
  // chance once in 10^10 runs.
  const far = [...counts].filter(([, count]) => Math.abs(count - expected) > 7 * Math.sqrt(expected))
  t.equal(counts.size, 62)
  t.same(far, [])
  t.end()
})

const position = fc.array(
  fc.oneof(anyText(), fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
  { minLength: 1, maxLength: 4 },
)
const secret = fc.stringMatching(/^[0-9a-f]{64}$/)

t.test('a cursor opens to its position, unless it was altered or belongs to another list or store', (t) => {
  const urlSafe = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.= '
  const change = fc.tuple(fc.nat(), fc.constantFrom(...urlSafe))
  fc.assert(
    fc.property(
      fc.uniqueArray(secret, { minLength: 2, maxLength: 2 }),
      fc.uniqueArray(anyText(), { minLength: 2, maxLength: 2 }),
      position,
      change,
      ([secret = '', foreign = ''], [bound = '', elsewhere = ''], held, [at, other]) => {
        const cursors = createCursors(sha256, secret)
        const cursor = cursors.seal(bound, held)
        const place = at % cursor.length
        fc.pre(cursor[place] !== other)
        const wrong = [
          cursor.slice(0, place) + other + cursor.slice(place + 1),
          cursor.slice(0, place) + other + cursor.slice(place),
          cursor.slice(0, place) + cursor.slice(place + 1),
          cursor.slice(0, place),
          elsewhere,
        ]
        // It needs no percent-encoding in a URL.
        return /^[\w.-]+$/.test(cursor) &&
          JSON.stringify(cursors.open(bound, cursor)) === JSON.stringify(held) &&
          wrong.every((text) => cursors.open(bound, text) === undefined) &&
          cursors.open(elsewhere, cursor) === undefined &&
          createCursors(sha256, foreign).open(bound, cursor) === undefined
      },
    ),
    { numRuns: 500 },
  )
  t.end()
})

/** A name or value: percent-encoded, literal, or with reserved characters. */
const piece = fc.oneof(
  anyText().map(encodeURIComponent),
  anyText().map((text) => encodeURIComponent(text).replaceAll('%20', '+').toLowerCase()),
  fc.string({ unit: fc.constantFrom(...'a b + = & ? %20 %2B %26 %3d %00 %C3%A9 é ;'.split(' ')) }),
)
const wellFormed = fc.array(fc.oneof(piece, fc.tuple(piece, piece).map((pair) => pair.join('='))), {
  maxLength: 6,
})
  .map((pieces) => pieces.join('&'))

t.test('a well-formed query is parsed like URLSearchParams', (t) => {
  fc.assert(
    fc.property(wellFormed, (text) => {
      // It drops one leading question mark.
      const expected = new Map<string, string[]>()
      for (const [name, value] of new URLSearchParams(`?${text}`)) {
        expected.set(name, [...expected.get(name) ?? [], value])
      }
      const { values, malformed } = readQuery(text)
      return malformed.size === 0 && JSON.stringify([...values]) === JSON.stringify([...expected])
    }),
    { numRuns: 500 },
  )
  t.end()
})

/** Whether every `%` begins an escape and the bytes are UTF-8, without `decodeURIComponent`. */
function isPercentEncodedUtf8(text: string): boolean {
  if (/%(?![0-9a-f]{2})/i.test(text)) return false
  const bytes = [...encoder.encode(text)]
  for (let at = bytes.indexOf(37); at >= 0; at = bytes.indexOf(37, at + 1)) {
    bytes.splice(at, 3, parseInt(String.fromCharCode(bytes[at + 1]!, bytes[at + 2]!), 16))
  }
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes))
    return true
  } catch {
    return false
  }
}

t.test('exactly the values with malformed percent-encoding are reported', (t) => {
  const escapes = '% %4 %41 %zz %C3 %A9 %ED%A0%80 %C0%80 %F4%90%80%80 %25 a +'.split(' ')
  const broken = fc.string({ unit: fc.constantFrom(...escapes), maxLength: 5 })
  let malformedCount = 0
  fc.assert(
    fc.property(broken, (value) => {
      const { malformed, values } = readQuery(`first=1&name=${value}&last=2`)
      malformedCount += malformed.size
      return malformed.has('name') === !isPercentEncodedUtf8(value) && malformed.size <= 1 &&
        values.get('first')?.[0] === '1' && values.get('last')?.[0] === '2' &&
        values.get('name')?.length === 1
    }),
    { numRuns: 500 },
  )
  t.ok(malformedCount > 50 && malformedCount < 450, `${malformedCount} of 500 were malformed`)
  t.end()
})

t.test('escapes are well-formed at the same limits as for decodeURIComponent, which never has to throw', (t) => {
  const { decodeURIComponent } = globalThis
  t.teardown(() => Object.assign(globalThis, { decodeURIComponent }))
  let throws = 0
  globalThis.decodeURIComponent = (text) => {
    try {
      return decodeURIComponent(text)
    } catch (error) {
      throws++
      throw error
    }
  }
  const bytes = '7f 80 8f 90 9f a0 bf c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5'.split(' ')
  let texts = ['']
  for (let length = 1; length <= 4; length++) {
    texts = texts.flatMap((text) => bytes.map((byte) => `${text}%${byte}`))
      // Later bytes of longer sequences only continue earlier ones.
      .filter((text) => length < 3 || /^%[ef]/.test(text))
      .filter((text) => length < 4 || /^%f.%[89ab].%[89ab]/.test(text))
    t.strictSame(
      texts.filter((text) => readQuery(text).values.has(text) === isPercentEncodedUtf8(text)),
      [],
      `${texts.length} sequences of ${length}`,
    )
  }
  readQuery('%ff=%ff&'.repeat(1000))
  t.equal(throws, 0)
  t.end()
})

const read = (text: string): unknown => readJson(encoder.encode(text)).value

/** The parsed value as JSON, or that the text is refused. */
function outcome(read: () => unknown): string {
  try {
    return JSON.stringify(read())
  } catch (error) {
    if (error instanceof Problem && error.code !== 'malformed_request') throw error
    return 'refused'
  }
}

t.test('JSON is parsed like JSON.parse', (t) => {
  const json = fc.tuple(fc.jsonValue(), fc.constantFrom('', ' ', '\t', '\r\n'))
    .map(([value, space]) => `${space}${JSON.stringify(value, null, space)}${space}`)
  fc.assert(
    fc.property(json, (text) => outcome(() => read(text)) === JSON.stringify(JSON.parse(text))),
    { numRuns: 500 },
  )
  // One character is changed, which cannot make two names equal.
  const plain = fc.jsonValue({ stringUnit: fc.constantFrom('"', '\\', '{', '}', ':', ',', '\u2028') })
  let refused = 0
  fc.assert(
    fc.property(
      plain,
      fc.nat(),
      fc.constantFrom('', '"', '\\', '{', ']', ':', ',', '0', '\u0000'),
      (value, at, other) => {
        const text = JSON.stringify(value)
        const broken = text.slice(0, at % text.length) + other + text.slice(at % text.length + 1)
        const expected = outcome(() => JSON.parse(broken))
        if (expected === 'refused') refused++
        const members = /"(?:[^"\\]|\\.)*"\s*:/.test(broken)
        const result = outcome(() => read(broken))
        return result === expected || (members && result === 'refused')
      },
    ),
    { numRuns: 500 },
  )
  t.ok(refused > 100, `${refused} of 500 were broken`)
  t.end()
})

const memberName = fc.oneof(fc.constantFrom('a', '"', '\\', '\\u0061', '__proto__', ''), anyText())

/** A JSON string literal in which the characters selected by `escaped` are escapes. */
function spell(text: string, escaped: (index: number) => boolean): string {
  const units = Array.from(
    { length: text.length },
    (_, index) =>
      escaped(index)
        ? `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`
        : JSON.stringify(text.charAt(index)).slice(1, -1),
  )
  return `"${units.join('')}"`
}

t.test('duplicate members are refused at any depth and with any escapes', (t) => {
  const depths = fc.array(
    fc.oneof(
      fc.constant((inner: string) => `[1,"}:{",${inner},{}]`),
      memberName.map((name) => (inner: string) => `{${JSON.stringify(`${name}x`)} : ${inner}, "y\\"":[{}]}`),
    ),
    { maxLength: 5 },
  )
  fc.assert(
    fc.property(memberName, memberName, fc.nat(), fc.nat(), depths, (name, between, one, two, depths) => {
      fc.pre(name !== between)
      const members = [
        `${spell(name, (index) => (one >> (index % 16) & 1) === 1)}: {"z": 1}`,
        `${JSON.stringify(between)}:["z"]`,
        `${spell(name, (index) => (two >> (index % 16) & 1) === 1)}\n: ":"`,
      ]
      const wrap = (inner: string) => depths.reduce((text, wrap) => wrap(text), inner)
      const twice = wrap(`{${members.join(',')}}`)
      const once = wrap(`{${members.slice(1).join(',')}}`)
      return outcome(() => read(twice)) === 'refused' &&
        outcome(() => read(once)) === JSON.stringify(JSON.parse(once))
    }),
    { numRuns: 500 },
  )
  t.equal(outcome(() => read('{"a":1,"\\u0061":2}')), 'refused')
  t.equal(outcome(() => read('{"a":1,"\\\\u0061":2}')), '{"a":1,"\\\\u0061":2}')
  t.equal(outcome(() => read('[{"a":1},{"a":2}]')), '[{"a":1},{"a":2}]')
  t.end()
})

t.test('a byte-order mark and anything but UTF-8 are refused', (t) => {
  const invalid = fc.constantFrom(...'ff c080 c3 80 eda080 f4908080 f888808080 e282'.split(' '))
    .map((digits) => Buffer.from(digits, 'hex'))
  fc.assert(fc.property(anyText(), anyText(), invalid, (before, after, bytes) => {
    const quoted = (text: string) => [...encoder.encode(JSON.stringify(text).slice(1, -1))]
    const json = Uint8Array.from([0x22, ...quoted(before), ...bytes, ...quoted(after), 0x22])
    return outcome(() => readJson(json)) === 'refused'
  }))
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const json = JSON.stringify(value)
    const utf16 = Uint8Array.from([...json].flatMap((character) => [character.charCodeAt(0), 0]))
    return outcome(() => read(`\ufeff${json}`)) === 'refused' && outcome(() => readJson(utf16)) === 'refused'
  }))
  t.equal(outcome(() => read('"\ufeff"')), '"\ufeff"', 'in a string it is an ordinary character')
  t.end()
})

t.test('Accept is evaluated as RFC 9110 §12.5.1 defines', (t) => {
  const range = fc.record({
    name: fc.constantFrom(
      ...'application/json application/* */* text/html text/* application/xml *'.split(' '),
    ),
    weight: fc.constantFrom(undefined, '0', '0.0', '0.000', '0.001', '0.5', '1', '1.000'),
    upper: fc.boolean(),
    extra: fc.constantFrom('', ';charset=utf-8', '; version="1"'),
    space: fc.constantFrom('', ' ', '\t'),
  })
  const specificity = (name: string) => ['*/*', 'application/*', 'application/json'].indexOf(name)
  fc.assert(
    fc.property(fc.array(range, { maxLength: 5 }), fc.boolean(), (ranges, gap) => {
      const written = ranges.map(({ name, weight, upper, extra, space }) => {
        const text = `${name}${extra}${weight === undefined ? '' : `${space};${space}q=${weight}`}`
        return space + (upper ? text.toUpperCase() : text) + space
      })
      const best = Math.max(-1, ...ranges.map(({ name }) => specificity(name)))
      const deciding = ranges.filter(({ name }) => specificity(name) === best && best >= 0)
      const admitted = ranges.length === 0 ||
        deciding.some(({ weight }) => weight === undefined || Number(weight) > 0)
      return accepts(written.join(gap ? ', ,' : ','), 'application/json') === admitted
    }),
    { numRuns: 500 },
  )
  t.equal(accepts(undefined, 'application/json'), true)
  t.end()
})

t.test('request ids have one format, are unique, and do not reveal the number of requests', (t) => {
  const form = /^req_[0-9A-HJKMNP-TV-Z]{20}$/
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const digits = Uint8Array.from({ length: 128 }, (_, code) => alphabet.indexOf(String.fromCharCode(code)))
  const serialOf = (id: string): number => {
    let serial = 0
    for (let at = 20; at < 24; at++) serial = serial * 32 + digits[id.charCodeAt(at)]!
    return serial
  }
  const next = createRequestIds()
  const first = next()
  const serials = [serialOf(first)]
  const samples = [first]
  const seen = new Uint8Array(2 ** 20)
  seen[serialOf(first)] = 1
  let repeated = 0
  for (let count = 1; count < seen.length; count++) {
    const id = next()
    const serial = serialOf(id)
    if (!id.startsWith(first.slice(0, 20)) || seen[serial] === 1) repeated++
    seen[serial] = 1
    if (count < 200) serials.push(serial)
    if (count % 10_000 === 0) samples.push(id)
  }
  t.equal(repeated, 0, 'the random part stays while serial numbers are unused')
  const replica = createRequestIds()()
  const after = next()
  t.equal(
    new Set([first, replica, after].map((id) => id.slice(0, 20))).size,
    3,
    'then the random part changes',
  )
  t.strictSame([...samples, replica, after].filter((id) => !form.test(id)), [])
  const steps = serials.slice(1).map((serial, index) => serial - serials[index]! & 0xfffff)
  t.ok(new Set(steps).size > 50, 'serial numbers do not count up')
  const starts = new Set(Array.from({ length: 50 }, () => serialOf(createRequestIds()())))
  t.ok(starts.size > 40, 'serial numbers start at random')
  t.end()
})

type MapStep =
  | readonly ['set', string, number]
  | readonly ['get', string]
  | readonly ['delete', string]

const bounds = fc.integer({ min: 2, max: 40 })
const mapKey = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz')
const mapSteps = (weight: fc.Arbitrary<number>, deletes = true) =>
  fc.array(
    fc.oneof(
      { weight: 100, arbitrary: fc.tuple(fc.constant('set' as const), mapKey, weight) },
      { weight: 60, arbitrary: fc.tuple(fc.constant('get' as const), mapKey) },
      { weight: deletes ? 10 : 0, arbitrary: fc.tuple(fc.constant('delete' as const), mapKey) },
    ),
    { maxLength: 200, size: 'max' },
  )

/** Runs steps on a cache. @returns The entries by last use with their weights, the latest last. */
function play(
  bound: number,
  steps: readonly MapStep[],
): { kept: Map<string, number>; used: Map<string, number> } {
  const map = createLruCache<{ readonly weight: number; readonly serial: number }>(
    bound,
    ({ weight }) => weight,
  )
  const used = new Map<string, number>()
  const latest = new Map<string, number>()
  const check = (key: string) => {
    const found = map.get(key)
    if (found !== undefined && found.serial !== latest.get(key)) {
      throw new Error(`${key} has not the value set last`)
    }
    return found
  }
  for (const [serial, step] of steps.entries()) {
    const [, key] = step
    if (step[0] === 'set') {
      map.set(key, { weight: step[2], serial })
      latest.set(key, serial)
      used.delete(key)
      used.set(key, step[2])
    } else if (step[0] === 'delete') {
      map.delete(key)
      latest.delete(key)
      used.delete(key)
    } else if (check(key) !== undefined) {
      const weight = used.get(key)!
      used.delete(key)
      used.set(key, weight)
    }
  }
  // Latest first: a lookup can only evict entries used before it.
  const kept = new Map<string, number>()
  for (const key of [...used.keys()].reverse()) {
    const found = check(key)
    if (found !== undefined) kept.set(key, found.weight)
  }
  return { kept, used }
}

const sum = (weights: Iterable<number>) => [...weights].reduce((total, weight) => total + weight, 0)

t.test('an LRU cache never exceeds its bound, whatever the weight of its entries', (t) => {
  const steps = mapSteps(fc.integer({ min: 1, max: 12 }))
  fc.assert(
    fc.property(bounds, steps, (bound, steps) => sum(play(bound, steps).kept.values()) <= bound),
    { numRuns: 500 },
  )
  t.end()
})

t.test('an LRU cache keeps the latest entries, up to half its bound', (t) => {
  // Without deletions: a deleted entry may have evicted others before.
  fc.assert(
    fc.property(bounds, mapSteps(fc.constant(1), false), (bound, steps) => {
      const { kept, used } = play(bound, steps)
      return [...used.keys()].slice(-Math.floor(bound / 2)).every((key) => kept.has(key))
    }),
    { numRuns: 500 },
  )
  t.end()
})

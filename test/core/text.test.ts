import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { test } from 'tap'
import { equalDigests } from '../../core/lib/digest.ts'
import { compareCodePoints, fold, foldWords } from '../../core/lib/text.ts'
import { anyText } from '../support/any-text.ts'

test('folding is idempotent', (t) => {
  fc.assert(fc.property(anyText(), (text) => fold(fold(text)) === fold(text)), { numRuns: 1_000 })
  for (const text of ['İstanbul', 'ẞ', 'ﬁ Å ͅ', '①Ⅳ', 'ŉ', 'ᾳ', 'ǅ', 'Ὰ͂']) {
    t.equal(fold(fold(text)), fold(text), text)
  }
  t.end()
})

test('every character folds to folded text', (t) => {
  const unstable: string[] = []
  const perText = 4_096
  for (let start = 0; start < 0x110000; start += perText) {
    const points = Array.from({ length: perText }, (_, index) => start + index)
      .filter((point) => point < 0xd800 || point > 0xdfff)
    const folded = fold(points.map((point) => String.fromCodePoint(point)).join(' '))
    if (fold(folded) !== folded) unstable.push(`from U+${start.toString(16)}`)
  }
  t.same(unstable, [])
  t.end()
})

test('letters without a Unicode decomposition are transliterated', (t) => {
  t.equal(fold('Université de Łódź'), 'universite de lodz')
  t.equal(
    fold('Øster Ðorđe Þór Weiß Æon Œuvre ısı Ħal Ŧe Ŋa'),
    'oster dorde thor weiss aeon oeuvre isi hal te na',
  )
  t.equal(fold('STRASSE'), fold('Straße'))
  t.end()
})

test('words are runs of letters and digits', (t) => {
  t.same(foldWords('  Åkerbär & Ängsull—2025! '), ['akerbar', 'angsull', '2025'])
  t.same(foldWords('Ανεμογαλήνη  Μεταφορές'), ['ανεμογαληνη', 'μεταφορεσ'])
  for (const text of ['ΣΑΣ', 'σας', 'σασ', 'Σας']) t.equal(fold(text), 'σασ', 'final sigma is sigma')
  t.same(foldWords('& — …'), [])
  t.end()
})

test('text compares by code points, like its UTF-8 bytes', (t) => {
  // UTF-16 code units order surrogate pairs before U+E000–U+FFFF.
  const point = fc.oneof(
    fc.constantFrom('a', '\uD7FF', '\uE000', '\uFFFF', '\u{10000}', '\u{10FFFF}'),
    anyText(),
  )
  const text = fc.array(point, { maxLength: 6 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, text, text, (shared, a, b) => {
      const expected = Buffer.compare(Buffer.from(shared + a), Buffer.from(shared + b))
      return Math.sign(compareCodePoints(shared + a, shared + b)) === expected
    }),
    { numRuns: 1_000 },
  )
  t.end()
})

test('digests are equal if all of their characters are', (t) => {
  for (const length of [32, 64]) {
    const digest = '0123456789abcdef'.repeat(4).slice(0, length)
    for (let index = 0; index < length; index++) {
      for (const other of ['', '-', 'é', '€', '00']) {
        t.ok(equalDigests(digest, digest))
        t.notOk(equalDigests(digest, digest.slice(0, index) + other + digest.slice(index + 1)))
      }
    }
  }
  t.end()
})

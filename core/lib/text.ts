const letterFolds: Readonly<Record<string, string>> = {
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ı: 'i',
  ħ: 'h',
  ŧ: 't',
  ŋ: 'n',
  ς: 'σ',
}

/**
 * The words of a text for search and sorting: compatibility-decomposed (NFKD), without combining marks, in lower case,
 * with letters that Unicode does not decompose spelled out and final sigma as sigma, split at everything but letters
 * and digits.
 *
 * @returns The words in order; none for a text without a letter or digit.
 */
export function foldWords(text: string): string[] {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[łøđðþßæœıħŧŋς]/g, (letter) => letterFolds[letter] ?? letter)
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
}

/**
 * The folded words of a name, separated by one space: the sort key of names.
 *
 * @example
 * ```ts
 * fold('Université de Łódź') // 'universite de lodz'
 * ```
 */
export function fold(text: string): string {
  return foldWords(text).join(' ')
}

/**
 * Compares by Unicode code points, like the bytes of UTF-8. The `<` of strings compares UTF-16 units, which orders
 * supplementary characters before U+E000–U+FFFF.
 *
 * @returns A number below, equal to or above 0, for `Array.prototype.sort`.
 */
export function compareCodePoints(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let index = 0; index < shared; index++) {
    const left = a.charCodeAt(index)
    const right = b.charCodeAt(index)
    if (left !== right) {
      return isSurrogate(left) === isSurrogate(right) ? left - right : isSurrogate(left) ? 1 : -1
    }
  }
  return a.length - b.length
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff
}

/** The name of a camel-case member on the wire, and of its column. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

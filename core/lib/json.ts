/**
 * Whether an object in a JSON text has two members of one name, which parsers disagree about (RFC 8259 §4).
 *
 * @param text Known to be JSON: its tokens are walked, and a string before a colon is a member's name.
 */
export function hasDuplicateMembers(text: string): boolean {
  // Two members have two colons.
  if (text.indexOf(':') === text.lastIndexOf(':')) return false
  const open: (Set<string> | undefined)[] = []
  for (const [token, , colon] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*(:))?|[{}[\]]/g)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (colon !== undefined) {
      const names = open.at(-1)
      const name: string = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1))
      if (names?.has(name)) return true
      names?.add(name)
    }
  }
  return false
}

/** Whether a JSON number is finite as a number of ECMAScript, and has the same decimal value. */
export function keepsDigits(number: string): boolean {
  // 15 digits always do.
  if (number.length <= 15 && !/e/i.test(number)) return true
  return decimalOf(number) === decimalOf(String(Number(number)))
}

/** A decimal number without the zeros at its ends; `undefined` for text that is not a decimal number. */
function decimalOf(number: string): string | undefined {
  const [, sign, integer, fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  if (integer === undefined) return undefined
  const digits = integer + fraction
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  if (start === end) return '0'
  while (digits[end - 1] === '0') end--
  const power = Number(exponent) - fraction.length + digits.length - end
  return `${sign}${digits.slice(start, end)}e${power}`
}

/** A number of more than 15 digits, or with an exponent. */
const mayLoseDigits = /\d[.\d]{15}|\d[eE]/

/** The tokens of a JSON text that say where its numbers are. Strings that are not names match without a group. */
const numberTokens =
  /(?<name>"[^"\\]*(?:\\.[^"\\]*)*")\s*:|"[^"\\]*(?:\\.[^"\\]*)*"|(?<mark>[{}[\],])|(?<number>-?\d[-+.\deE]*)/g

/**
 * The places of numbers that lose digits when they are parsed, at most 20.
 *
 * @param text Known to be JSON.
 */
export function findLossyNumbers(text: string): readonly (readonly (string | number)[])[] {
  const found: (readonly (string | number)[])[] = []
  if (!mayLoseDigits.test(text)) return found
  // A name in each open object, an index in each open array.
  const path: (string | number)[] = []
  for (const { groups } of text.matchAll(numberTokens)) {
    const { mark, name, number } = groups!
    const last = path.length - 1
    if (name !== undefined) {
      path[last] = JSON.parse(name)
    } else if (mark === '{') {
      path.push('')
    } else if (mark === '[') {
      path.push(0)
    } else if (mark === '}' || mark === ']') {
      path.pop()
    } else if (mark === ',') {
      const step = path[last]
      path[last] = typeof step === 'number' ? step + 1 : ''
    } else if (number !== undefined && !keepsDigits(number)) {
      found.push([...path])
      if (found.length === 20) return found
    }
  }
  return found
}

/** @returns `undefined` when the text is not JSON. The parser's own message would quote the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const string = String.raw`"[^"\\\0-\x1f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\0-\x1f]*)*"`
const scalar = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null`
const tokenPattern = new RegExp(String.raw`[ \t\n\r]*([{}[\],:]|${string}|${scalar})`, 'y')

/**
 * What may follow a token, by the first characters of the tokens that are allowed; `0` stands for numbers and words.
 */
const allowedTokens = {
  value: '{["0',
  itemOrEnd: '{["0]',
  nameOrEnd: '"}',
  name: '"',
  colon: ':',
  commaOrBrace: ',}',
  commaOrBracket: ',]',
  nothing: '',
}

type Expected = keyof typeof allowedTokens

/** The index of the first token that a text which is not JSON should not have there, or the length of the text. */
export function findJsonError(text: string): number {
  /** The opening characters of the objects and arrays around the token. */
  const open: string[] = []
  let expected: Expected = 'value'
  for (let at = 0;; at = tokenPattern.lastIndex) {
    tokenPattern.lastIndex = at
    const token = tokenPattern.exec(text)?.[1] ?? ' '
    const kind = token.charAt(0).replace(/[-\w]/, '0')
    if (!allowedTokens[expected].includes(kind)) return at + text.slice(at).search(/[^ \t\n\r]|$/)
    if (kind === '{' || kind === '[') open.push(kind)
    else if (kind === '}' || kind === ']') open.pop()
    const isName: boolean = kind === '"' && (expected === 'name' || expected === 'nameOrEnd')
    expected = isName ? 'colon' : expectedAfter(kind, open.at(-1))
  }
}

/** What follows a token that is not a name, within an object, an array or neither. */
function expectedAfter(kind: string, container: string | undefined): Expected {
  switch (kind) {
    case '{':
      return 'nameOrEnd'
    case '[':
      return 'itemOrEnd'
    case ':':
      return 'value'
    case ',':
      return container === '{' ? 'name' : 'value'
  }
  if (container === undefined) return 'nothing'
  return container === '{' ? 'commaOrBrace' : 'commaOrBracket'
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The texts of the reference page: prose, lists, and code. */
import { PROBLEMS } from '../http/problem.ts'
import { type Inset, type Markup, markup } from './html.ts'

/** Converts backticks and links. The code of a problem links to it. */
export function prose(text: string): readonly Inset[] {
  return text.split(/(`[^`]+`|\[[^\][]+\]\((?:#|https:)[^()]+\))/).map((part, index) => {
    if (index % 2 === 0) return part
    const [, code, title, id] = /^`(.*)`$|^\[(.*)\]\((.*)\)$/.exec(part) ?? []
    if (id !== undefined) return markup`<a href="${id}">${title}</a>`
    if (code === undefined) return part
    return Object.hasOwn(PROBLEMS, code)
      ? markup`<a href="#problem-${code}"><code>${code}</code></a>`
      : markup`<code>${code}</code>`
  })
}

/** Lines of `prose`: those that begin with `- ` or `1. ` are items of lists. */
export function paragraphs(lines: readonly string[]): readonly Markup[] {
  const kinds: Readonly<Record<string, string>> = { '- ': 'ul', '1. ': 'ol' }
  const markerOf = (line: string | undefined) => /^(?:- |1\. )/.exec(line ?? '')?.[0] ?? ''
  return lines.map((line, index) => {
    const marker = markerOf(line)
    if (marker === '') return markup`<p>${prose(line)}</p>`
    const begin = markerOf(lines[index - 1]) === marker ? '' : `<${kinds[marker]}>`
    const end = markerOf(lines[index + 1]) === marker ? '' : `</${kinds[marker]}>`
    return markup`${{ html: begin }}<li>${prose(line.slice(marker.length))}</li>${{ html: end }}`
  })
}

/** Names of members, strings, and the rest that is highlighted: words of four languages, and figures. */
const tokenPattern = new RegExp(
  [
    /("(?:[^"\\\n]|\\.)*")(?=\s*:)/,
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)/,
    /(?<![\w$./-])(?:as|await|const|curl|echo|except|export|for|from|if|import|new|of|read|throw|try)\b(?![.:=])/,
    /\b(?:true|false|null)\b|(?<![\w.$-])-?\d+(?:\.\d+)?\b/,
  ].map(({ source }) => source).join('|'),
  'g',
)

/** Code as markup, see `markPlaces`. */
export function highlight(code: string, address?: string): readonly Inset[] {
  const pieces: Inset[] = []
  let end = 0
  for (const match of code.matchAll(tokenPattern)) {
    const [token, name, text] = match
    const kind = kindOf(name, text)
    pieces.push(
      ...markPlaces(code.slice(end, match.index), address),
      markup`<span class="${kind}">${markPlaces(token, address)}</span>`,
    )
    end = match.index + token.length
  }
  return [...pieces, ...markPlaces(code.slice(end), address)]
}

/** The class of a token. */
function kindOf(name: string | undefined, text: string | undefined): string {
  if (name !== undefined) return 'k'
  return text !== undefined ? 's' : 'n'
}

/**
 * Marks what the page's script replaces: the address of the service, and the slug of the partner
 * where it is a whole value.
 *
 * @param address The address that stands for that of the service, unless that is known.
 */
export function markPlaces(code: string, address?: string): readonly Inset[] {
  const pieces = address === undefined ? [code] : code.split(address)
  return pieces.map((piece, index) => [
    index > 0 && markup`<span class="origin">${address}</span>`,
    markSlugs(piece),
  ])
}

function markSlugs(code: string): readonly Inset[] {
  return code.split(/((?<=[='"])demo(?=['"&\s]|$))/).map((part, index) =>
    index % 2 === 0 ? part : markup`<span class="slug">${part}</span>`
  )
}

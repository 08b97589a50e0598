import { PROBLEMS } from '../http/problem.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { DocumentSettings } from './model.ts'
import shared from './page-assets.json' with { type: 'json' }

/** HTML, as opposed to text, which is escaped. */
export interface Markup {
  readonly html: string
}

/** A value in a template: text is escaped, markup is not, `undefined` and `false` are empty. */
export type Inset = Markup | string | number | undefined | false | readonly Inset[]

/** Escapes text for content and for quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A template that escapes its insets. Indentation is removed from the template, not from the insets. */
export function markup(strings: readonly string[], ...insets: readonly Inset[]): Markup {
  // Insets are long: no pattern looks at them.
  const parts = strings.map((part) => part.replace(/\n\s*/g, '\n'))
  parts[0] = parts[0]!.replace(/^\n/, '')
  parts.push(parts.pop()!.replace(/\n$/, ''))
  return { html: parts.reduce((text, part, index) => text + write(insets[index - 1]) + part) }
}

/** The same for a template with the names of its insets in braces. */
function fillMarkup(template: string, insets: Readonly<Record<string, Inset>>): Markup {
  const parts = template.split(/\{(\w+)\}/)
  const strings = parts.filter((_, index) => index % 2 === 0)
  const names = parts.filter((_, index) => index % 2 === 1)
  return markup(strings, ...names.map((name) => insets[name]))
}

/** A page with its own style and script inline, and the policy that allows no other. */
export function createPage(
  assets: Readonly<Record<'page' | 'style' | 'script', string>>,
  insets: Readonly<Record<string, Inset>>,
  sha256: Sha256,
  form: `'self'` | `'none'` = `'none'`,
): { readonly html: string; readonly policy: readonly [name: string, value: string] } {
  const { script } = assets
  const style = shared.style + assets.style
  const policy = [
    `default-src 'none'`,
    `style-src ${source(style, sha256)}`,
    `script-src ${source(script, sha256)}`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action ${form}`,
    `frame-ancestors 'none'`,
  ].join('; ')
  const inlined = { ...insets, style: { html: style }, script: { html: script } }
  return { ...fillMarkup(shared.page + assets.page, inlined), policy: ['Content-Security-Policy', policy] }
}

/** Allows an inline style or script by its hash (CSP 3 §2.3.1). */
function source(text: string, sha256: Sha256): string {
  const bytes = (sha256(text).match(/../g) ?? []).map((digits) => parseInt(digits, 16))
  return `'sha256-${btoa(String.fromCharCode(...bytes))}'`
}

function write(inset: Inset): string {
  if (inset === undefined || inset === false) return ''
  if (typeof inset === 'object') return 'html' in inset ? inset.html : inset.map(write).join('')
  return escapeHtml(String(inset))
}

/** Converts backticks and links. The code of a problem links to it. */
export function prose(text: string): readonly Inset[] {
  return text.split(/(`[^`]+`|\[[^\]]+\]\((?:#|https:)[^)]+\))/).map((part) => {
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
const TOKEN = new RegExp(
  [
    /("(?:[^"\\\n]|\\.)*")(?=\s*:)/,
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)/,
    /(?<![\w$./-])(?:as|await|const|curl|echo|except|export|for|from|if|import|new|of|read|throw|try)\b(?![.:=])/,
    /\b(?:true|false|null)\b|(?<![\w.$-])-?\d+(?:\.\d+)?\b/,
  ].map(({ source }) => source).join('|'),
  'g',
)

export function highlight(code: string): readonly Inset[] {
  const pieces: Inset[] = []
  let end = 0
  for (const match of code.matchAll(TOKEN)) {
    const [token, name, text] = match
    const kind = name !== undefined ? 'k' : text !== undefined ? 's' : 'n'
    pieces.push(
      ...markPlaces(code.slice(end, match.index)),
      markup`<span class="${kind}">${markPlaces(token)}</span>`,
    )
    end = match.index + token.length
  }
  return [...pieces, ...markPlaces(code.slice(end))]
}

/** Stands for the address of the service, with its base path, until the page is complete. */
export const EXAMPLE_ORIGIN = 'https://api.example.com'

/** Marks what the page's script replaces: the origin, and the slug of the partner where it is a whole value. */
export function markPlaces(code: string): readonly Inset[] {
  return code.split(/(https:\/\/api\.example\.com|(?<=[='"])demo(?=['"&\s]|$))/).map((part, index) =>
    index % 2 === 0 ? part : markup`<span class="${part === 'demo' ? 'slug' : 'origin'}">${part}</span>`
  )
}

export interface CodeBlock {
  readonly caption: Inset
  readonly note?: string
  /** Describes the code to screen readers; by default the caption. */
  readonly what?: string
  /** Text, or a text in each of several languages. */
  readonly code: string | ReadonlyMap<Language, string>
  /** Whether there is no button to copy it. */
  readonly fixed?: boolean
}

/** The languages of samples, with what the page calls them. */
export const LANGUAGES = {
  shell: 'Shell',
  client: 'JavaScript',
  php: 'PHP',
  python: 'Python',
} as const

export type Language = keyof typeof LANGUAGES

/** The address of the service; the page's script replaces the example. */
export function baseUrl({ servers }: DocumentSettings): string {
  return servers?.find(({ url }) => URL.canParse(url))?.url.replace(/\/+$/, '') ?? EXAMPLE_ORIGIN
}

export function codeBlock({ caption, note, what = String(caption), code, fixed = false }: CodeBlock): Markup {
  const button = !fixed && markup`<button class="copy" type="button" aria-label="Copy ${what}">Copy</button>`
  const blocks = typeof code === 'string'
    ? preformatted('', what, code)
    : [...code].map(([language, text], index) => {
      // The first stands for languages without a sample.
      const others = index > 0 ? [] : Object.keys(LANGUAGES).filter((one) => !code.has(one as Language))
      return preformatted(`in ${[language, ...others].join(' ')}`, LANGUAGES[language], text)
    })
  return markup`
    <figure${typeof code !== 'string' && markup` class="request"`}>
      <figcaption><span>${caption}</span>${note && markup`<small>${note}</small>`}${button}</figcaption>
      ${blocks}
    </figure>
  `
}

export function preformatted(classes: string, label: string, code: string): Markup {
  const text = markup`<code>${highlight(code)}</code>`
  return markup`<pre class="${classes}" tabindex="0" role="group" aria-label="${label}">${text}</pre>`
}

export function table(
  heads: readonly [string, string],
  rows: readonly {
    readonly id?: string
    readonly name: string
    readonly note: Inset
    readonly about: Inset
  }[],
): Markup {
  const body = rows.map(({ id, name, note, about }) =>
    markup`
      <tr${id !== undefined && markup` id="${id}"`}>
        <th scope="row"><code>${name}</code><small>${note}</small></th>
        <td>${about}</td>
      </tr>
    `
  )
  return markup`
    <table>
      <thead><tr>${heads.map((head) => markup`<th scope="col">${head}</th>`)}</tr></thead>
      <tbody>${body}</tbody>
    </table>
  `
}

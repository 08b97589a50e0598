/** HTML that is written with everything in it escaped. */

/** Text that is HTML already. */
export interface Markup {
  readonly html: string
}

/** What may stand in a template: text is escaped, markup is not, nothing is nothing. */
export type Inset = Markup | string | number | undefined | readonly Inset[]

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for content and for quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** A template whose insets are escaped. How the code is indented does not show: what is inset keeps its lines. */
export function markup(strings: TemplateStringsArray, ...insets: readonly Inset[]): Markup {
  const parts = strings.map((part) => part.replace(/\n\s*/g, '\n'))
  const text = parts.reduce((text, part, index) => text + write(insets[index - 1]) + part)
  return { html: text.replace(/^\n|\n$/g, '') }
}

function write(inset: Inset): string {
  if (inset === undefined) return ''
  if (typeof inset === 'object') return 'html' in inset ? inset.html : inset.map(write).join('')
  return escapeHtml(String(inset))
}

/** A sentence in which backticks mark code. */
export function prose(text: string): readonly Inset[] {
  return text.split('`').map((part, index) => index % 2 === 1 ? markup`<code>${part}</code>` : part)
}

/** A value as JSON of several lines, each kind of token told from the others. */
export function prettyJson(value: unknown): readonly Inset[] {
  const text = JSON.stringify(value, null, 2)
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?)/g
  const pieces: Inset[] = []
  let end = 0
  for (const match of text.matchAll(token)) {
    const [all, quoted, colon, word, figure] = match
    pieces.push(text.slice(end, match.index))
    if (colon !== undefined) pieces.push(markup`<span class="k">${quoted}</span>${colon}`)
    else {pieces.push(
        markup`<span class="${quoted === undefined ? 'n' : 's'}">${quoted ?? word ?? figure}</span>`,
      )}
    end = match.index + all.length
  }
  return [...pieces, text.slice(end)]
}

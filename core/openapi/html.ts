import type { JsonSchema } from './model.ts'

/** HTML, as opposed to text, which is escaped. */
export interface Markup {
  readonly html: string
}

/** A value in a template: text is escaped, markup is not, `undefined` is empty. */
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

/** A template that escapes its insets. Indentation is removed from the template, not from the insets. */
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

/** Converts backticks to `<code>`. */
export function prose(text: string): readonly Inset[] {
  return text.split('`').map((part, index) => index % 2 === 1 ? markup`<code>${part}</code>` : part)
}

/** JSON on several lines with highlighted tokens. */
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

/** A placeholder that the page's script replaces by the actual origin. */
const ORIGIN: Markup = markup`<span class="origin">https://api.example.com</span>`

/** @param id Unique in the page. @param what Describes the code to screen readers. */
export function codeBlock(id: string, caption: string, what: string, code: Inset, copies = true): Markup {
  const button =
    markup`<button class="copy" type="button" data-of="${id}" hidden aria-label="Copy ${what}">Copy</button>`
  return markup`
    <figure>
      <figcaption>${caption}${copies ? button : undefined}</figcaption>
      <pre class="tall" tabindex="0" role="group"
        aria-label="${what}"><code id="${id}">${code}</code></pre>
    </figure>
  `
}

/** A shell command that reads the key from the environment. */
export function curl({ keyHeader, method, target, headers = [], body }: {
  readonly keyHeader?: string | undefined
  readonly method: string
  readonly target: string
  readonly headers?: readonly string[]
  readonly body?: unknown
}): readonly Inset[] {
  const fields = [
    ...(keyHeader === undefined ? [] : [`"${keyHeader}: $PARTNER_API_KEY"`]),
    ...(body === undefined ? [] : [`"Content-Type: application/json"`]),
    ...headers.map((field) => `"${field}"`),
  ]
  return [
    'curl',
    ...(method === 'GET' || method === 'POST' && body !== undefined ? [] : [` -X ${method}`]),
    fields.map((field) => ` \\\n  -H ${field}`),
    body === undefined ? undefined : ` \\\n  -d '${bodyText(body)}'`,
    fields.length + (body === undefined ? 0 : 1) === 0 ? ' ' : ' \\\n  ',
    '"',
    ORIGIN,
    `${target}"`,
  ]
}

/** A short body stays on one line. Quotes are escaped for the shell. */
function bodyText(body: unknown): string {
  const compact = JSON.stringify(body)
  const text = compact.length > 60 ? JSON.stringify(body, null, 2).replaceAll('\n', '\n  ') : compact
  return text.replaceAll("'", `'\\''`)
}

export function table(
  caption: string,
  heads: readonly [string, string],
  rows: readonly { readonly id?: string; readonly name: Inset; readonly about: Inset }[],
): Markup {
  const body = rows.map(({ id, name, about }) => {
    const cells = markup`
      <th scope="row">${name}</th>
      <td>${about}</td>
    `
    return id === undefined ? markup`<tr>${cells}</tr>` : markup`<tr id="${id}">${cells}</tr>`
  })
  return markup`
    <table>
      <caption class="unseen">${caption}</caption>
      <thead>
        <tr>
          <th scope="col">${heads[0]}</th>
          <th scope="col">${heads[1]}</th>
        </tr>
      </thead>
      <tbody>
    ${body}</tbody>
    </table>
  `
}

export function typeOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? ''
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) return [...new Set(options.map(typeOf))].join(' or ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  const types = [schema.type ?? 'any'].flat()
  const plain = types.map((type) =>
    type === 'array' && schema.items ? `array of ${typeOf(schema.items)}` : type
  )
  return `${plain.join(' or ')}${schema.format?.startsWith('int') === false ? `, ${schema.format}` : ''}`
}

export function boundsOf(schema: JsonSchema): readonly string[] {
  const { minimum, maximum, minLength = 0, maxLength, maxItems } = schema as Readonly<Record<string, number>>
  const bounds: string[] = []
  if (minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
    bounds.push(`${minimum}–${maximum}`)
  }
  const isFreeText = schema.format === undefined && schema['pattern'] === undefined
  if (maxLength !== undefined && maxLength < 8192 && isFreeText) {
    bounds.push(minLength > 0 ? `${minLength}–${maxLength} characters` : `up to ${maxLength} characters`)
  }
  if (maxItems !== undefined && maxItems < 1000) bounds.push(`at most ${maxItems}`)
  return bounds
}

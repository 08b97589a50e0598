import type { Sha256 } from '../lib/digest.ts'
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

/** Fills a template that has the names of its insets in braces. */
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

/** The reference as Markdown, for programs and agents: made from the page, so that both say the same. */
import type { StaticDocument } from '../http/message.ts'
import { otherTurn } from './document.ts'
import { EXAMPLE_ORIGIN, type Language, LANGUAGES } from './html.ts'

/** What surrounds the content of an element: before it, and after it. */
const MARKS: Readonly<Record<string, readonly [before: string, after: string]>> = {
  ...{ h1: ['\n\n# ', '\n\n'], h2: ['\n\n## ', '\n\n'] },
  ...{ h3: ['\n\n### ', '\n\n'], h4: ['\n\n#### ', '\n\n'] },
  ...{ p: ['\n\n', '\n\n'], figcaption: ['\n\n', '\n\n'], label: ['\n\n', ': '], dl: ['\n\n', '\n\n'] },
  ...{ tbody: ['\n\n', '\n\n'], tr: ['\n- ', ''], td: [': ', ''], dt: ['\n- ', ''], dd: [': ', ''] },
  ...{ code: ['`', '`'], small: [' (', ') '], b: ['', ' '], pre: ['\n\n```\n', '\n```\n\n'] },
}

/** Elements that are for readers of the page only. */
const LEFT_OUT = new RegExp(
  [
    /<(button|legend|thead)\b.*?<\/\1>/,
    /<summary>\d.*?<\/summary>/,
    /<figcaption><span><b.*?<\/figcaption>/,
    /<(?:a class="md"|p class="eyebrow").*?<\/(?:a|p)>/,
    /<label class="slug.*?<\/label>/,
  ].map(({ source }) => source).join('|'),
  'gs',
)

/**
 * Other requests get the event loop between its sections.
 *
 * @param page The reference page.
 * @param endpoint The id of the only section to convert: its samples are in all languages, those of the whole in Shell.
 */
export async function createMarkdown(page: string, endpoint: string | undefined): Promise<StaticDocument> {
  const root = endpoint === undefined ? '' : '../'
  const begin = endpoint === undefined ? '<main' : `<section class="op split" id="${endpoint}"`
  const [part = ''] = page.slice(page.indexOf(begin)).split(endpoint ? '</section>' : '</main>', 1)
  const texts = await Array.fromAsync(part.split(/(?<=<\/section>)/), async (section) => {
    await otherTurn()
    const shown = section.replace(
      /<pre class="in (\w+).*?<\/pre>/gs,
      (sample, language: Language) =>
        endpoint ? `<p>${LANGUAGES[language]}:</p>${sample}` : language === 'shell' ? sample : '',
    )
    return toMarkdown(shown.replace(LEFT_OUT, ''))
  })
  const address = page.includes(EXAMPLE_ORIGIN) ? `Replace \`${EXAMPLE_ORIGIN}\` by this address. ` : ''
  const links = `[The whole reference](${root}docs.md) · [OpenAPI](${root}openapi.json)`
  return {
    text: `${texts.filter(Boolean).join('\n\n')}\n\n${address}${links}\n`,
    headers: ['Link', `<${root}docs${endpoint ? `#${endpoint}` : ''}>; rel="alternate"; type="text/html"`],
    variesBy: 'Accept',
  }
}

/** Converts the elements of the page. Fields of fields are lists in lists. */
function toMarkdown(html: string): string {
  const parts = ['']
  const add = (part: string): void => {
    if (/^\n(?!\n)/.test(part) && parts.at(-1)!.endsWith('\n')) part = part.slice(1)
    else if (/^[\n:]/.test(part)) {
      while (parts.length > 1 && parts.at(-1)!.trim() === '') parts.pop()
      parts.push(parts.pop()!.trimEnd())
    }
    if (/\s$/.test(parts.at(-1)!)) part = part.replace(/^ +/, '')
    if (part !== '') parts.push(part)
  }
  let [depth, isCode, link] = [-1, false, '']
  for (const [, end, name = '', attributes = '', text] of html.matchAll(/<(\/?)(\w+)([^>]*)>|([^<]+)/g)) {
    const isEnd = end === '/'
    if (text !== undefined) isCode ? parts.push(text) : add(text.replace(/\s+/g, ' '))
    else if (name === 'ul' || name === 'ol') {
      depth += isEnd ? -1 : 1
      if (depth < 0 || depth === 0 && !isEnd) add('\n\n')
    } else if (name === 'li' && !isEnd) add(`\n${'  '.repeat(depth)}- `)
    else if (name === 'p' && depth >= 0) add(isEnd ? '' : ': ')
    else if (name === 'a') {
      if (!isEnd) link = /href="(?!#)([^"]*)/.exec(attributes)?.[1] ?? ''
      if (link !== '') add(isEnd ? `](${link})` : '[')
    } else if (name === 'pre' || !isCode) {
      isCode = name === 'pre' && !isEnd
      add(MARKS[name]?.[isEnd ? 1 : 0] ?? '')
    }
  }
  return parts.join('').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))).trim()
}

/** The reference of the library: a page for each entry of the packages, from what `deno doc` says of it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

interface JsDoc {
  readonly doc?: string
  readonly tags?: readonly {
    readonly kind: string
    readonly name?: string
    readonly tsType?: { readonly repr: string }
    readonly doc?: string
  }[]
}

interface Symbol {
  readonly name: string
  readonly declarations: readonly {
    readonly kind: string
    readonly location: { readonly filename: string; readonly line: number }
    readonly jsDoc?: JsDoc
  }[]
}

const groups: Readonly<Record<string, readonly string[]>> = {
  Functions: ['function'],
  'Classes and constants': ['class', 'variable'],
  Types: ['interface', 'typeAlias', 'enum'],
}

/** The pages by name, in the order of deno.json's `exports`, and the client's. */
export function referencePages(root: string): Map<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'deno.json'), 'utf8'))
  const entries: [string, string][] = Object.entries<string>(exports)
    .map(([name, file]) => [name.replace('.', 'partner-api'), file])
  entries.push(['partner-api-client', './adapters/client/mod.ts'])
  const files = [...new Set(entries.map(([, file]) => file))]
  const deno = spawnSync('deno', ['doc', '-q', '--json', ...files], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1e8,
  })
  if (deno.status !== 0) throw new Error(`deno doc failed: ${deno.error?.message ?? deno.stderr}`)
  const { nodes } = JSON.parse(deno.stdout)
  return new Map(entries.map(([name, file]) => {
    const { module_doc, symbols } = nodes[pathToFileURL(join(root, file)).href]
    const parts = Object.entries(groups).map(([title, kinds]) => {
      const own = symbols.filter(({ declarations }: Symbol) => kinds.includes(declarations[0]!.kind))
      return own.length === 0 ? '' : `## ${title}\n\n${own.map(describe).join('\n')}`
    })
    return [
      `api-${name.replaceAll(/\W+/g, '-')}`,
      `---\noutline: [2, 3]\n---\n\n# \`${name}\`\n\n${prose(module_doc?.doc)}\n\n${parts.join('\n')}`,
    ]
  }))
}

function describe({ name, declarations }: Symbol): string {
  const parts = declarations.map(({ kind, location, jsDoc }) => {
    const tags = jsDoc?.tags ?? []
    const list = tags.filter(({ kind }) => kind !== 'example' && kind !== 'module').map((tag) => {
      const subject = tag.name ?? tag.tsType?.repr
      const head = `${tag.kind === 'param' ? '' : `${tag.kind} `}${subject ? `\`${subject}\`` : ''}`.trim()
      return `- ${head}: ${prose(tag.doc).replaceAll('\n', '\n  ')}\n`
    })
    const examples = tags.filter(({ kind }) => kind === 'example').map(({ doc }) => `\n${doc}\n`)
    const code = `\`\`\`ts\n${declarationAt(location, kind)}\n\`\`\``
    return [prose(jsDoc?.doc), code, list.join('') + examples.join('')].join('\n\n')
  })
  return `### ${name}\n\n${parts.join('\n')}`
}

/** The text of a declaration, without the body of a function, the methods of a class, or the value of a constant. */
function declarationAt({ filename, line }: { filename: string; line: number }, kind: string): string {
  const lines = readFileSync(new URL(filename), 'utf8').split('\n').slice(line)
  const until = (end: RegExp): string =>
    lines.slice(0, lines.findIndex((text) => end.test(text)) + 1).join('\n')
  const text = {
    function: () => until(/^\S.* \{$/).replace(/ \{$/, ''),
    class: () => [lines[0], ...until(/^\}/).match(/^ {2}(?:readonly|get) \w.*$/gm) ?? [], '}'].join('\n'),
    variable: () => until(/=/).replace(/ =.*$/s, ''),
    typeAlias: () => lines.slice(0, lines.indexOf('')).join('\n'),
  }[kind] ?? (() => until(/^\}|^\S.*\}$/))
  return text().replace(/^export /, '')
}

/** Text of a docstring as Markdown. */
function prose(doc = ''): string {
  const text = doc.replaceAll(/\{@link(?:code)? ([^}|]+?)(?:\s*\|.*?)?\}/g, '`$1`').trim()
  return text.split('`').map((part, index) => index % 2 ? part : part.replaceAll('<', '&lt;')).join('`')
}

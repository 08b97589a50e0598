/** The reference page: it is complete, and escapes what it shows. */
import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import * as v from 'valibot'
import { createServiceNames } from '../../core/http/headers.ts'
import { PROBLEM_ACTIONS } from '../../core/http/problem-actions.ts'
import { PROBLEMS } from '../../core/http/problem.ts'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import { createDocument, type OpenApiDocument } from '../../core/openapi/document.ts'
import { escapeHtml, markup } from '../../core/openapi/html.ts'
import { createMarkdown } from '../../core/openapi/markdown.ts'
import type { DocumentSettings } from '../../core/openapi/model.ts'
import { createReferencePage } from '../../core/openapi/reference-page.ts'
import { highlight, prose } from '../../core/openapi/reference-text.ts'
import { createReference } from '../../core/openapi/reference.ts'
import samples from '../../core/openapi/samples.json' with { type: 'json' }
import { ROUTES } from '../../core/routes/router.ts'
import { resolveSettings } from '../../core/settings.ts'

const settings = {
  names: createServiceNames('service'),
  basePath: '',
  problemBase: 'https://a.example/problems',
  limits: DEFAULT_LIMITS,
  maxStalenessMs: 1,
  allowBrowsers: false,
}

/** The page of a document. */
async function pageOf(described: OpenApiDocument, settings: DocumentSettings): Promise<string> {
  const reference = await createReference(described, settings)
  return (await createReferencePage(reference, settings, () => 'ab')).text
}

/** Text as a browser shows it. */
const shown = (html: string): string =>
  html.replace(/<[^>]*>/g, '').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

t.test('the page escapes all text', async (t) => {
  const evil = `<script>alert('"&')</script>`
  const safe = '&#60;script&#62;alert(&#39;&#34;&#38;&#39;)&#60;/script&#62;'
  t.equal(escapeHtml(evil), safe)
  t.equal(
    markup`<p title="${evil}">${[evil, [evil]]}${undefined}</p>`.html,
    `<p title="${safe}">${safe}${safe}</p>`,
  )
  t.equal(markup`${markup`<b>${1}</b>`}`.html, '<b>1</b>')
  t.equal(markup`${prose(`a \`<b>\` ${evil}`)}`.html, `a <code>&#60;b&#62;</code> ${safe}`)
  const json = JSON.stringify({ [evil]: [evil, 1, null] }, null, 2)
  t.equal(shown(markup`${highlight(json)}`.html), json)
  t.notMatch(markup`${highlight(json)}`.html, /<script/)
  const hostile = await pageOf(
    await createDocument(ROUTES.map((route) => ({ ...route, summary: evil, description: evil })), settings),
    { ...settings, problemBase: evil },
  )
  t.equal(hostile.match(/<script/g)?.length, 1, 'the page has only its own script')
})

t.test('Markdown keeps texts of the host in their place', async (t) => {
  const summary = 'One\n# Two'
  const description = 'Three\n# Four'
  const schema = v.object({ 'a`b\nc': v.picklist(['d\n# e', '`', '``f`']) })
  const routes = ROUTES.filter(({ name }) => name === 'plans')
    .map((route) => ({ ...route, name: 'own', summary, description, response: schema }))
  const described = await createDocument(routes, settings)
  const [methods] = Object.values(described.paths)
  const [operation] = Object.values(methods!)
  const { text } = await createMarkdown(await createReference(described, settings), operation!.operationId)
  t.match(text, /^### One # Two\n\n/)
  t.match(text, /\nThree # Four/)
  t.match(text, '- `` a`b c ``')
  t.match(text, 'one of `d # e` `` ` `` ``` ``f` ```')
})

t.test('texts with many unfinished links and codes take linear time', (t) => {
  const before = process.threadCpuUsage()
  for (const begin of ['[', '[a](#', '[a](https:', '`a']) prose(begin.repeat(50_000))
  // Quadratic time was a minute.
  t.ok(process.threadCpuUsage(before).user < 5_000_000)
  t.end()
})

t.test('the assets of the pages are up to date', (t) => {
  const script = fileURLToPath(new URL('../../core/openapi/pack-assets.js', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
  t.strictSame([status, stderr], [0, ''])
  t.end()
})

t.test('the page documents every operation and problem', async (t) => {
  const described = await createDocument(ROUTES, resolveSettings({}))
  const text = await pageOf(described, settings)
  const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length, 'ids are unique')
  for (const [, id] of text.matchAll(/href="#([^"]+)"/g)) {
    if (!ids.includes(id)) t.fail(`#${id} does not exist`)
  }
  const operations = Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation) => [path, operation] as const)
  )
  const names = operations.map(([, { operationId }]) => operationId)
  const others = ids.filter((id) => !names.includes(id!))
  t.strictSame(others.filter((id) => !/[-.]/.test(id!)), [], 'none is that of an endpoint of a host')
  for (const [path, { operationId: id, 'x-problems': problems }] of operations) {
    const section = text.slice(text.indexOf(` id="${id}"`)).split('</section>', 1).join()
    t.ok(section.includes(`<code>${path}</code>`), path)
    const codes = [...section.matchAll(/<li><a href="#problem-(\w+)"/g)].map(([, code]) => code)
    const isOpen = operations.find(([, one]) => one.operationId === id)![1].security.length === 0
    const usual = [400, 406, 408, 413, 414, 431, 500]
    const expected = problems.filter((code) => !isOpen || !usual.includes(PROBLEMS[code].status))
    t.strictSame(codes.sort(), expected.sort(), id)
    const panels = section.split('<div class="panel">').slice(2)
    for (const panel of panels) {
      const [, first = ''] = /<a href="#problem-(\w+)" aria-current/.exec(panel) ?? []
      const body = JSON.parse(shown(/<pre>(.*?)<\/pre>/s.exec(panel)?.[1] ?? ''))
      t.equal(body.code, first, id)
      const instance = new RegExp(`^${path.replace(/\{\w+\}/g, '(?!undefined)[\\w-]+')}$`)
      t.match(body.instance, instance, id)
    }
  }
  for (const code of Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[]) {
    const row = text.slice(text.indexOf(`<tr id="problem-${code}"`)).split('</tr>', 1).join()
    t.ok(shown(row).includes(PROBLEM_ACTIONS[code].replaceAll('`', '')), `${code}: what to do`)
  }
  const headings = [...text.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level))
  t.strictSame(
    headings.filter((level, index) => level > (headings[index - 1] ?? 0) + 1),
    [],
    'headings skip no level',
  )
  t.equal(headings.filter((level) => level === 1).length, 1)
  t.notMatch(text, /\bsrc="(?:https?:)?\/\/|<link [^>]*href="(?:https?:)?\/\//, 'no external resource')
  t.notMatch(text, /spk_(?:live|test)_[0-9A-Za-z]{12}_/, 'no text in the format of a key')
  const size = gzipSync(text).length
  t.comment(`${size} bytes, compressed`)
  t.ok(size <= 47 * 1024, `${size} bytes`)
})

t.test('the page shows every sample, with the names of the service', async (t) => {
  const samplesOf = async (name: string) => {
    const names = createServiceNames(name)
    const named = { ...settings, names }
    const text = await pageOf(await createDocument(ROUTES, named), named)
    const blocks = text.matchAll(/<pre class="in (\w+)[^>]*><code>(.*?)<\/code>/gs)
    return new Set([...blocks].map(([, language, html = '']) => `${language}\n${shown(html)}`))
  }
  const written = Object.values(samples).flatMap((programs) =>
    Object.entries(programs).map(([language, text]) => `${language}\n${text}`)
  )
  t.strictSame([...await samplesOf('service')].sort(), [...new Set(written)].sort())
  const acme = [...await samplesOf('acme')].join('\n')
  t.notMatch(acme, /X-Service|\/service\//)
  t.match(acme, "serviceName: 'acme'")
  t.match(acme, 'https://api.example.com/acme/public/profiles?partner=demo')
  t.match(acme, 'X-Acme-Partner-Key')
})

t.test('only the slug of the partner is replaced, whatever the address of the service', async (t) => {
  const url = 'https://demo.acme.example/demo/a$&b'
  const text = await pageOf(
    await createDocument(ROUTES, resolveSettings({})),
    { ...settings, names: createServiceNames('demo'), servers: [{ url }] },
  )
  const [, sample = ''] = /id="profiles".*?<pre class="in shell"[^>]*>(.*?)<\/pre>/s.exec(text) ?? []
  t.match(shown(sample), `url='${url}/demo/public/profiles?partner=demo&q=`)
  t.equal(sample.split('class="slug"').length, 2, sample)
  t.match(text, `<code>${escapeHtml(url)}</code>`)
})

t.test('the Markdown says what the page says', async (t) => {
  const description = 'One `word`, [a place](#plans), [a page](https://a.example/).'
  const routes = ROUTES.map((route) => ({ ...route, description }))
  const reference = await createReference(await createDocument(routes, settings), settings)
  const { text } = await createMarkdown(reference, undefined)
  for (const line of ['1. Put the key where ', '2. Verify the key: ', '3. Read some data, ']) {
    t.ok(text.includes(`\n${line}`), line)
  }
  t.match(text, '\nOne `word`, a place, [a page](https://a.example/). Works with any valid key.\n')
  t.match(
    text,
    '\n- `scope_missing` (403): The key does not hold the scope that this endpoint needs. Ask the operator',
  )
  t.match(text, ' (one of `name` `-published_at` · default `name`)\n')
  t.match(text, '\n  - `partner` (object)\n', 'without a colon before nothing')
  const { text: one } = await createMarkdown(reference, 'plans')
  t.strictSame(one.match(/^(?:Shell|JavaScript|PHP|Python):$/gm), [
    'Shell:',
    'JavaScript:',
    'PHP:',
    'Python:',
  ])
  t.match(one, /^### List plans\n\nGET `\/service\/public\/plans`\n\n/)
  const ticks = { kind: 'code', caption: 'A', label: 'A', code: '```', isCopied: true } as const
  const fenced = {
    ...reference,
    parts: [{ name: 'A', sections: [{ id: 'a', level: 2, title: 'A', blocks: [ticks] }] }],
  } as const
  t.match((await createMarkdown(fenced, undefined)).text, 'A\n\n````\n```\n````\n')
})

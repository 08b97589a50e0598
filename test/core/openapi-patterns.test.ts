/** The patterns of the OpenAPI document, for every language that a client is generated in. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import * as v from 'valibot'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerApi } from '../../core/api.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import { convert, isPortablePattern, type JsonSchema } from '../../core/schemas/json-schema.ts'
import { readIdempotencyKey } from '../../core/signups/idempotency.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const own = defineEndpoint({
  name: 'patterns',
  method: 'POST',
  path: '/patterns',
  scope: 'read:patterns',
  summary: 'Have patterns',
  body: {
    portable: v.pipe(v.string(), v.regex(/^[a-z]+\/\d{1,3}[+.-]*$/)),
    separators: v.pipe(v.string(), v.regex(/^[^\u2028\u2029]*$/)),
    raw: v.pipe(v.string(), v.regex(new RegExp('^[^\u2028\u2029]*$'))),
    upper: v.pipe(v.string(), v.regex(/^[a-z]$/i)),
    ahead: v.pipe(v.string(), v.regex(/^(?!a)b$/)),
    named: v.pipe(v.string(), v.regex(/(?<name>a)\k<name>/)),
    emoji: v.pipe(v.string(), v.emoji()),
    color: v.pipe(v.string(), v.hexColor()),
    ulid: v.optional(v.pipe(v.string(), v.ulid())),
  },
  handle: () => ({ data: null }),
})

const store = await openMemoryStore()
const modules = createModuleAdministration(store, { actor: 'test' })
await modules.define({ name: 'patterns', scope: 'read:patterns', feature: 'Patterns' })
const api = createPartnerApi({ store }, { endpoints: [own] })
const described = await (await api.fetch(new Request('http://api.example/service/openapi.json'))).json()
await api.close()

const patterns = new Set<string>()
const unions: JsonSchema[] = []
JSON.stringify(described, (name, value) => {
  if (name === 'pattern' && typeof value === 'string') patterns.add(value)
  if (typeof value === 'object' && value !== null && Array.isArray(value.anyOf)) unions.push(value)
  return value
})

t.test('every pattern compiles everywhere', (t) => {
  t.ok(patterns.size > 25, `${patterns.size} patterns`)
  for (const pattern of patterns) {
    t.ok(isPortablePattern(pattern), pattern)
    const literal: RegExp = new Function(`return /${pattern}/u`)()
    t.equal(literal.source, pattern, 'as a literal')
  }
  const engines = {
    php:
      '$all = json_decode(stream_get_contents(STDIN)); foreach ($all as $one) preg_match("\\x01$one\\x01u", "") === false && print $one;',
    python3:
      'import json, re, sys, warnings\nwarnings.simplefilter("error")\nfor one in json.load(sys.stdin): re.compile(one)',
    ruby: 'require "json"; JSON.parse(STDIN.read).each { |one| Regexp.new(one) }',
  }
  for (const [program, code] of Object.entries(engines)) {
    const flag = program === 'php' ? '-r' : program === 'ruby' ? '-e' : '-c'
    const { error, status, stdout, stderr } = spawnSync(program, [flag, code], {
      input: JSON.stringify([...patterns]),
      encoding: 'utf8',
    })
    if (error !== undefined) t.comment(`${program} is not installed`)
    else t.strictSame([status, stdout, stderr], [0, '', ''], program)
  }
  t.end()
})

t.test('patterns of own endpoints that others read otherwise are left out', (t) => {
  const { properties } =
    described.paths['/service/patterns'].post.requestBody.content['application/json'].schema
  const { partner: _, ...members } = properties
  const kept = Object.entries(members).filter(([, schema]) => (schema as JsonSchema)['pattern'] !== undefined)
  t.strictSame(kept.map(([name]) => name), ['portable', 'color', 'ulid'])
  t.match(convert(v.pipe(v.string(), v.regex(/^a\/[\w.-]$/))), { pattern: '^a\\/[\\w.-]$' })
  const others = [
    'é',
    '[\u2028]',
    '\\u2028',
    '\\xff',
    '\\x80-\\x9f',
    '\\p{L}',
    '\\cA',
    '\\0',
    '(a)\\1',
    '(?<a>b)',
    '(?=a)',
    '(?<!a)',
    '(?i:a)',
    '[a&&b]',
    '[[a]',
    '[a--b]',
    '[\\w-.]',
    '[.-\\d]',
    'a{1001}',
    '(?:a{40}){40}',
    'a/b',
    'a{',
    '(',
    '[]',
    '\\v',
    '\\-',
  ]
  t.strictSame(others.filter(isPortablePattern), [])
  t.end()
})

t.test('a union has no keyword of its own members', (t) => {
  t.ok(unions.length > 2)
  for (const { anyOf: _, description: __, examples: ___, ...others } of unions) {
    t.strictSame(Object.keys(others).filter((name) => !/^(?:title|default)$/.test(name)), [])
  }
  t.end()
})

t.test('the pattern of Idempotency-Key admits what the service accepts, and nothing else', (t) => {
  const branches: readonly JsonSchema[] = described.components.parameters.idempotencyKey.schema.anyOf
  const expressions = branches.map(({ pattern }) => new RegExp(String(pattern)))
  const differing: string[] = []
  const visit = (text: string, length: number): void => {
    // Servers remove white space around a value.
    const isValue = text === text.trim() && text !== ''
    const admits = expressions.some((one) => one.test(text))
    if (isValue && admits !== 'key' in readIdempotencyKey(text)) differing.push(text)
    if (length > 0) { for (const one of [',', '"', ' ', '\\', 'z', '-']) visit(text + one, length - 1) }
  }
  visit('', 6)
  t.strictSame(differing, [])
  t.end()
})

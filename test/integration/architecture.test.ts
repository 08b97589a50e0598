import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import process from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'

interface Source {
  /** Below the repository, with slashes. */
  readonly path: string
  readonly text: string
}

/** What a set of sources does wrong, in words; each begins with the path. */
type Rule = (sources: readonly Source[]) => string[]

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources: readonly Source[] = globSync('{core,adapters,cli}/**/*.ts', { cwd: root })
  .map((path) => path.replaceAll('\\', '/')).sort()
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

// What a comment, a regular expression and the two kinds of strings look like. A slash begins an expression only
// where no value can stand before it.
const lexeme =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<=(?:^|[(,=:[!&|?{};>\n]|\breturn)\s*)\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/g

/** The text without comments and regular expressions. */
function withoutComments(text: string): string {
  return text.replace(lexeme, (found) => found.startsWith('/') ? ' ' : found)
}

/** The text without what strings say: only the code that is left, that in templates included. */
function withoutStrings(text: string): string {
  return text.replace(
    lexeme,
    (found) =>
      found.startsWith('`')
        ? [...found.matchAll(/\$\{([^}]*)\}/g)].map(([, code]) => `(${code})`).join(' ')
        : found.startsWith('/')
        ? ' '
        : `''`,
  )
}

interface Import {
  readonly specifier: string
  readonly typeOnly: boolean
}

function importsOf(text: string): Import[] {
  const code = withoutComments(text)
  const statements = code.matchAll(
    /^\s*(?:import|export)\s+(type\s+)?(?:[\w$*{}\s,]+?\s+from\s+)?(['"])([^'"]+)\2/gm,
  )
  const calls = code.matchAll(/\bimport\s*\(\s*(['"`])([^'"`]+)\1/g)
  return [
    ...Array.from(statements, ([, type, , specifier = '']) => ({
      specifier,
      typeOnly: type !== undefined,
    })),
    ...Array.from(calls, ([, , specifier = '']) => ({ specifier, typeOnly: false })),
  ]
}

const floorOf = (path: string): string => path.slice(0, path.indexOf('/'))
const targetOf = (path: string, specifier: string): string => posix.join(posix.dirname(path), specifier)
const isRelative = (specifier: string): boolean => specifier.startsWith('.')

function eachImport(
  all: readonly Source[],
  judge: (path: string, one: Import) => string | undefined,
): string[] {
  return all.flatMap(({ path, text }) =>
    importsOf(text).flatMap((one) => {
      const complaint = judge(path, one)
      return complaint === undefined ? [] : [`${path} ${complaint}`]
    })
  )
}

const floors = ['core', 'adapters', 'cli']

const runDown: Rule = (all) =>
  eachImport(all, (path, { specifier }) => {
    if (!isRelative(specifier)) return undefined
    const target = targetOf(path, specifier)
    const to = floors.indexOf(floorOf(target))
    return to >= 0 && to <= floors.indexOf(floorOf(path)) ? undefined : `imports ${target}`
  })

const ownPackages: Rule = (all) =>
  eachImport(all, (path, { specifier }) => {
    if (isRelative(specifier)) return undefined
    const name = specifier.split('/')[0] ?? ''
    const floor = floorOf(path)
    const known = floor === 'core'
      ? ['itty-router', 'valibot', '@valibot'].includes(name)
      : floor === 'adapters'
      ? !['commander', 'undici'].includes(name)
      : true
    return known ? undefined : `imports the package ${specifier}`
  })

const platformNames =
  /(?<![.\w$])(?:process|Buffer|Bun|Deno|self|importScripts|window|document|global|require|__dirname|__filename|navigator|localStorage|XMLHttpRequest)\b(?!\s*:)/g

/** A name that the file declares itself is not the platform's. */
const noPlatform: Rule = (all) =>
  all.filter(({ path }) => floorOf(path) === 'core').flatMap(({ path, text }) => {
    const code = withoutStrings(text)
    const declared = new Set(
      Array.from(code.matchAll(/\b(?:const|let|function)\s+([\w$]+)/g), ([, name]) => name),
    )
    const used = Array.from(code.matchAll(platformNames), ([name]) => name).filter((name) =>
      !declared.has(name)
    )
    return [...new Set(used)].map((name) => `${path} uses ${name}`)
  })

const maxLines = 400
const shortFiles: Rule = (all) =>
  all.flatMap(({ path, text }) => {
    const lines = text.trimEnd().split('\n').length
    return lines <= maxLines ? [] : [`${path} has ${lines} lines`]
  })

const tellingNames: Rule = (all) =>
  all.flatMap(({ path }) => {
    const parts = path.replace(/\.ts$/, '').split('/')
    const empty = /(?:^|-)(?:utils?|helpers?|commons?|types?|managers?|services?|misc|shared)$/
    return parts.flatMap((part) =>
      !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(part)
        ? [`${path} is not in kebab-case`]
        : empty.test(part)
        ? [`${path} is named after nothing`]
        : []
    )
  })

const barrels = ['core/mod.ts', 'adapters/client/mod.ts']
const entries = Object.values<string>(JSON.parse(readFileSync(join(root, 'deno.json'), 'utf8')).exports)
  .map((path) => posix.normalize(path))

/** The other public entries may pass on the types that their own signatures name, or these could not be written down. */
const oneBarrel: Rule = (all) =>
  all.filter(({ path }) => !barrels.includes(path)).flatMap(({ path, text }) => {
    const code = withoutComments(text)
    const imported = new Set(
      Array.from(
        code.matchAll(/^\s*import\s+(?:type\s+)?([\w$*{}\s,]+?)\s+from/gm),
        ([, names = '']) => names,
      )
        .flatMap((names) => names.split(/[{},\s]+/)),
    )
    const exported = code.matchAll(/^\s*export\s+(type\s+)?(?:(\*)|\{([^}]*)\})(\s*(?:as\s+\w+\s+)?from)?/gm)
    return Array.from(exported).flatMap(([statement, type, star, names = '', from]) => {
      if (type !== undefined && star === undefined && entries.includes(path)) return []
      const first = names.split(',').map((name) => name.trim().replace(/^type\s+/, '').split(/\s/)[0] ?? '')
      const passesOn = from !== undefined || first.some((name) => imported.has(name))
      return passesOn ? [`${path} re-exports: ${statement.trim()}`] : []
    })
  })

/** Types are gone when code runs, so `import type` closes no circle. */
const noCycles: Rule = (all) => {
  const uses = new Map(
    all.map(({ path, text }) => [
      path,
      importsOf(text).filter(({ specifier, typeOnly }) => isRelative(specifier) && !typeOnly)
        .map(({ specifier }) => targetOf(path, specifier)),
    ]),
  )
  const done = new Set<string>()
  const cycles: string[] = []
  const walk = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) return void cycles.push([...way.slice(way.indexOf(path)), path].join(' → '))
    if (done.has(path)) return
    for (const next of uses.get(path) ?? []) walk(next, [...way, path])
    done.add(path)
  }
  for (const path of uses.keys()) walk(path, [])
  return cycles
}

interface Check {
  readonly says: string
  readonly rule: Rule
  /** Each breaks the rule by itself. */
  readonly bad: readonly (Readonly<Record<string, string>>)[]
  /** Keeps it, however it looks. */
  readonly good: Readonly<Record<string, string>>
}

const checks: readonly Check[] = [
  {
    says: 'imports run down only',
    rule: runDown,
    bad: [
      { 'core/a.ts': `import { sha256 } from '../adapters/digest.ts'` },
      { 'core/keys/a.ts': `import type { A } from '../../cli/main.ts'` },
      { 'core/a.ts': `const a = await import('../cli/main.ts')` },
      { 'adapters/runtimes/a.ts': `import {\n  a,\n  type B,\n} from '../../cli/output/a.ts'` },
      { 'adapters/a.ts': `export * from '../cli/a.ts'` },
      { 'cli/a.ts': `import '../test/run.ts'` },
    ],
    good: {
      'core/a.ts':
        `/** import { x } from '../cli/a.ts' */\n// import '../cli/a.ts'\nimport { b } from './http/b.ts'`,
      'adapters/stores/a.ts': `import { a } from '../../core/a.ts'`,
      'cli/a.ts': `import { a } from '../core/a.ts'\nimport { b } from '../adapters/b.ts'`,
    },
  },
  {
    says: 'a floor imports its own packages only',
    rule: ownPackages,
    bad: [
      { 'core/a.ts': `import { hash } from 'node:crypto'` },
      { 'core/a.ts': `import fc from "fast-check"` },
      { 'core/a.ts': `import type { Command } from 'commander'` },
      { 'adapters/a.ts': `import { Command } from 'commander'` },
      { 'adapters/a.ts': `const { request } = await import('undici')` },
    ],
    good: {
      'core/a.ts': `import { Router } from 'itty-router/Router'\nimport { object } from 'valibot'`,
      'adapters/a.ts': `import postgres from 'postgres'\nimport { hash } from 'node:crypto'`,
      'cli/a.ts': `import { Command } from 'commander'\nimport { request } from 'undici'`,
    },
  },
  {
    says: 'core knows no platform',
    rule: noPlatform,
    bad: [
      'process.env.HOME',
      'const a = Buffer.from(b)',
      'typeof Deno',
      'if (typeof Bun !== "undefined") a()',
      'self.addEventListener("fetch", a)',
      'importScripts("a.js")',
      'window.alert()',
      'a(document)',
      'a(`${process.pid}`)',
      'const a = /`/; process.exit()',
    ].map((text) => ({ 'core/a.ts': text })),
    good: {
      'core/a.ts': [
        `// process, Buffer and Deno`,
        `const window = { document: 1 }`,
        `const text = 'window' + "self" + \`process\``,
        `a.self(window.document, /Buffer/)`,
      ].join('\n'),
      'cli/a.ts': 'process.exit()',
    },
  },
  {
    says: 'files stay short',
    rule: shortFiles,
    bad: [{ 'core/a.ts': 'a\n'.repeat(401) }],
    good: { 'core/a.ts': 'a\n'.repeat(400) },
  },
  {
    says: 'names tell what is in a file',
    rule: tellingNames,
    bad: [
      'core/httpQuery.ts',
      'core/http_query.ts',
      'core/Query.ts',
      'core/utils.ts',
      'core/string-utils.ts',
      'core/helpers/a.ts',
      'core/common.ts',
      'adapters/types.ts',
      'cli/key-manager.ts',
      'core/service.ts',
    ].map((path) => ({ [path]: '' })),
    good: { 'core/service-names.ts': '', 'adapters/stores/sqlite/migrations/001-facts-and-content.ts': '' },
  },
  {
    says: 'only the two mod.ts re-export, and public entries the types that they need',
    rule: oneBarrel,
    bad: [
      { 'core/http/mod.ts': `export { a } from './a.ts'` },
      { 'core/a.ts': `export * from './b.ts'` },
      { 'adapters/a.ts': `export type { A } from '../core/a.ts'` },
      { 'core/a.ts': `import { b } from './b.ts'\nexport { b }` },
      { 'core/a.ts': `import type { B } from './b.ts'\nexport type { B }` },
      { 'core/a.ts': `export * as b from './b.ts'` },
      { 'adapters/runtimes/node.ts': `export { a } from '../../core/a.ts'` },
      { 'adapters/runtimes/node.ts': `export type * from '../../core/a.ts'` },
    ],
    good: {
      'core/mod.ts': `export { a } from './a.ts'\nexport type * from './b.ts'`,
      'core/a.ts': `import { b } from './b.ts'\nconst c = b\nexport { c }`,
      'adapters/runtimes/node.ts': `import type { A } from '../../core/a.ts'\nexport type { A }`,
    },
  },
  {
    says: 'no two files wait for each other',
    rule: noCycles,
    bad: [
      { 'core/a.ts': `import { b } from './b.ts'`, 'core/b.ts': `import { a } from './a.ts'` },
      { 'core/a.ts': `import { a } from './a.ts'` },
      {
        'core/a.ts': `import { b } from './x/b.ts'`,
        'core/x/b.ts': `import { type C } from './c.ts'`,
        'core/x/c.ts': `export { a } from '../a.ts'`,
      },
    ],
    good: {
      'core/a.ts': `import { b } from './b.ts'\nimport { c } from './c.ts'`,
      'core/b.ts': `import type { A } from './a.ts'\nimport { c } from './c.ts'`,
      'core/c.ts': '',
    },
  },
]

const asSources = (files: Readonly<Record<string, string>>): Source[] =>
  Object.entries(files).map(([path, text]) => ({ path, text }))

for (const { says, rule, bad, good } of checks) {
  t.test(says, (t) => {
    t.same(rule(sources), [])
    t.same(rule(asSources(good)), [], 'what looks wrong and is not')
    for (const files of bad) {
      t.not(rule(asSources(files)).length, 0, `sees ${JSON.stringify(files).slice(0, 90)}`)
    }
    t.end()
  })
}

t.test('all of the code was looked at', (t) => {
  for (const floor of floors) {
    t.ok(sources.filter(({ path }) => floorOf(path) === floor).length >= 15, floor)
  }
  const imports = sources.reduce((count, { text }) => count + importsOf(text).length, 0)
  const keywords = sources.reduce(
    (count, { text }) => count + (text.match(/^(?:import\b|\} from )/gm)?.length ?? 0),
    0,
  )
  t.ok(imports >= keywords - sources.length && imports > 300, `${imports} imports`)
  t.end()
})

/**
 * Imports modules in a program of their own, in which what a module could set going is recorded, and in which there is
 * nothing that only Node has. @returns What was called or left behind.
 */
function traceImport(urls: readonly string[]): string[] {
  const program = `
    const seen = []
    const { argv, stdout } = process
    const record = (owner, name) => {
      const original = owner[name]
      owner[name] = function (...all) { seen.push(name); return Reflect.apply(original, this, all) }
    }
    for (const name of ['setTimeout', 'setInterval', 'queueMicrotask', 'fetch', 'addEventListener']) {
      if (globalThis[name]) record(globalThis, name)
    }
    for (const name of ['getRandomValues', 'randomUUID']) record(crypto, name)
    for (const name of ['log', 'info', 'warn', 'error', 'debug']) record(console, name)
    record(Date, 'now')
    record(performance, 'now')
    for (const name of ['process', 'Buffer', 'global', 'setImmediate', 'clearImmediate', 'navigator']) {
      delete globalThis[name]
    }
    const before = new Set(Reflect.ownKeys(globalThis))
    for (const url of argv.slice(1)) await import(url).catch((error) => seen.push(String(error)))
    for (const name of Reflect.ownKeys(globalThis)) if (!before.has(name)) seen.push('global ' + String(name))
    stdout.write(JSON.stringify(seen))
  `
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program, ...urls],
    { encoding: 'utf8', cwd: root },
  )
  try {
    return JSON.parse(stdout)
  } catch {
    throw new Error(`The program that imports ended badly: ${stderr}`)
  }
}

t.test('importing core sets nothing going', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-import-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const files = sources.filter(({ path }) => floorOf(path) === 'core')
    .map(({ path }) => pathToFileURL(join(root, path)).href)
  t.same(traceImport(files), [])

  const bad: readonly (readonly [string, string])[] = [
    ['setTimeout(() => {}, 1)', 'setTimeout'],
    ['const timer = setInterval(() => {}, 1e9); clearInterval(timer)', 'setInterval'],
    ['export const id: string = crypto.randomUUID()', 'randomUUID'],
    ['export const started: number = Date.now()', 'now'],
    ['console.warn("hello")', 'warn'],
    ['Object.assign(globalThis, { leaked: 1 })', 'global leaked'],
    ['process.exit(0)', 'ReferenceError: process is not defined'],
  ]
  for (const [index, [text, seen]] of bad.entries()) {
    const file = join(folder, `bad-${index}.ts`)
    writeFileSync(file, text)
    t.ok(traceImport([pathToFileURL(file).href]).includes(seen), text)
  }
  t.end()
})

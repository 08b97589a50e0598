/**
 * The layers of docs/ARCHITECTURE.md, checked on the imports that TypeScript finds: static, dynamic and type-only ones alike.
 * core/tsconfig.json keeps platform globals out of core, and the package test keeps imports free of side
 * effects.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import {
  drawRooms,
  type Graph,
  pathsIn,
  PICTURE_PAGE,
  pictureBlock,
  readGraph,
  ROOMS,
} from './import-graph.ts'

const FLOORS = ['core', 'adapters', 'cli']

/** An import runs from a higher layer to a lower one, or stays in its room. */
function layerOf(path: string): number {
  const [floor = '', room = ''] = path.replace(/\.\w+$/, '').split('/')
  if (!FLOORS.includes(floor)) return Infinity
  return floor === 'core' && ROOMS.includes(room) ? ROOMS.indexOf(room) : ROOMS.length + FLOORS.indexOf(floor)
}

const PACKAGES: readonly (readonly [folder: string, allowed: RegExp])[] = [
  ['core/', /^(?:valibot|@valibot\/to-json-schema|itty-router\/IttyRouter)$/],
  ['adapters/', /^(?:@opentelemetry\/api|postgres|@prometheus-io\/client|undici\/index\.js|node:.+)$/],
  ['cli/build/', /^(?:rollup|rollup-plugin-dts|node:.+)$/],
  ['cli/', /^(?:commander|undici|valibot|node:.+)$/],
]

const root = fileURLToPath(new URL('../..', import.meta.url))
const temporary = mkdtempSync(join(tmpdir(), 'partner-api-architecture-'))
t.teardown(() => rmSync(temporary, { recursive: true }))

function forbiddenImports(graph: Graph): string[] {
  return Array.from(graph).flatMap(([path, targets]) =>
    targets.filter((target) =>
      /\.(?:ts|json)$/.test(target)
        ? layerOf(target) > layerOf(path)
        : !PACKAGES.find(([folder]) => path.startsWith(folder))?.[1].test(target)
    ).map((target) => `${path} imports ${target}`)
  )
}

/** The files in cycles: repeatedly removes files without imports or importers. */
function filesInCycles(graph: Graph): string[] {
  let left = [...graph.keys()]
  for (let before = Infinity; left.length < before;) {
    before = left.length
    left = left.filter((path) => graph.get(path)?.some((target) => left.includes(target)))
    left = left.filter((path) => left.some((other) => graph.get(other)?.includes(path)))
  }
  return left
}

t.test('imports go to the same or a lower layer, without cycles', (t) => {
  const graph = readGraph(root)
  const documented = readFileSync(PICTURE_PAGE, 'utf8').matchAll(/^\| `core\/([a-z]+)(?:\.ts)?` \|/gm)
  t.same(Array.from(documented, ([, room]) => room), ROOMS, 'the documented order')
  t.ok([...graph.values()].flat().length > 500, 'the graph has more than 500 imports')
  t.same(forbiddenImports(graph), [])
  t.same(filesInCycles(graph), [])
  t.end()
})

t.test('every kind of import is checked', (t) => {
  const files = {
    'cli/main.ts': `import '../test/run.ts'`,
    'adapters/bun.ts': `export * from '../cli/main.ts'\nimport 'commander'`,
    'core/keys/a.ts': `import type { B } from './b.ts'\nexport type A = B`,
    'core/keys/b.ts': `import { hash } from 'node:crypto'\nexport type B = typeof import('./a.ts')`,
    'core/lib/c.ts': `const later = () => import('../keys/a.ts')\n// import '../mod.ts'`,
    'test/run.ts': '',
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(temporary, path, '..'), { recursive: true })
    writeFileSync(join(temporary, path), text)
  }
  const graph = readGraph(temporary)
  t.same(forbiddenImports(graph).sort(), [
    'adapters/bun.ts imports cli/main.ts',
    'adapters/bun.ts imports commander',
    'cli/main.ts imports test/run.ts',
    'core/keys/b.ts imports node:crypto',
    'core/lib/c.ts imports core/keys/a.ts',
  ])
  t.same(filesInCycles(graph).sort(), ['core/keys/a.ts', 'core/keys/b.ts'])
  t.end()
})

t.test('docs/ARCHITECTURE.md has the picture of the imports between rooms', (t) => {
  const picture = drawRooms(readGraph(root))
  const isDrawn = readFileSync(PICTURE_PAGE, 'utf8').includes(pictureBlock(picture))
  t.ok(isDrawn, 'otherwise, run: node test/integration/import-graph.ts')
  t.match(picture, '  core_policy --> core_keys\n')
  const nodes = picture.match(/^ +(?:cli|[a-z_]+\[.+\])$/gm) ?? []
  t.ok(nodes.length > 20 && nodes.length <= 25, `${nodes.length} rooms are few enough to be read`)
  t.end()
})

t.test('files have at most 400 lines and specific names, and only mod.ts re-exports', (t) => {
  const vague = /\b(?:utils?|helpers?|commons?|types?|managers?|(?<!self-)services?|misc|shared)(?:\.ts$|\/)/
  const files = pathsIn(root).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  const found = (isWrong: (file: { path: string; text: string }) => boolean) =>
    files.filter(isWrong).map(({ path }) => path)
  t.same(found(({ text }) => text.split('\n').length > 401), [], 'more than 400 lines')
  t.same(found(({ path }) => !/^[a-z0-9/-]+\.ts$/.test(path) || vague.test(path)), [], 'vague names')
  t.same(
    found(({ text }) => /^export [^(='`]* from '/m.test(text)).filter((path) => !path.endsWith('/mod.ts')),
    [],
  )
  const withoutNoun =
    /\/\*\*\s+(?:\* )?(?:Those|That|Such|The same|Its|Their|Also|Like|Each|By|Not|Never|Without|After|Before|Only|Unlike)\b/
  t.same(found(({ text }) => withoutNoun.test(text)), [], 'docstrings without a noun')
  t.end()
})

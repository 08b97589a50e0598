/**
 * The imports between the files of this package, and the picture of them in docs/ARCHITECTURE.md, which
 * `node test/integration/import-graph.ts` writes.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from '@typescript/typescript6'

/** The imports of each file: paths below the folder, and names of packages. */
export type Graph = ReadonlyMap<string, readonly string[]>

/** The rooms of core from bottom to top: folders, and files that are a room of their own. The rest assembles them. */
export const ROOMS: readonly string[] = [
  'lib',
  'model',
  'http',
  'ports',
  'wire',
  'limits',
  'keys',
  'policy',
  'cache',
  'content',
  'audit',
  'admin',
  'webhooks',
  'reports',
  'signups',
  'replicas',
  'schemas',
  'routes',
  'openapi',
]

export const pathsIn = (folder: string): string[] =>
  globSync('{core,adapters,cli}/**/*.ts', { cwd: folder }).map((path) => path.replaceAll('\\', '/')).sort()

/** Reads the imports that TypeScript finds: static, dynamic and type-only ones alike. */
export function readGraph(folder: string): Graph {
  return new Map(
    pathsIn(folder).map((path) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(folder, path), 'utf8'), true, true)
      const targets = importedFiles.map(({ fileName }) =>
        fileName.startsWith('.') ? normalize(join(dirname(path), fileName)).replaceAll('\\', '/') : fileName
      )
      return [path, targets]
    }),
  )
}

/** The page with the picture. */
export const PICTURE_PAGE: string = fileURLToPath(new URL('../../docs/ARCHITECTURE.md', import.meta.url))

/** Nearly all rooms import these. */
const notDrawn = ['core/lib', 'core/model', 'adapters/digest']

/** The room of a file as the picture has it: `cli`, a folder or file of `adapters`, a room of core, or what assembles them. */
function roomOf(path: string): string {
  const [floor = '', room = ''] = path.replace(/\.\w+$/, '').split('/')
  if (floor === 'cli') return floor
  return floor === 'core' && !ROOMS.includes(room) ? 'core/api' : `${floor}/${room}`
}

/** Draws rooms and their imports as a graph of Mermaid, without the arrows that follow from others. */
export function drawRooms(graph: Graph): string {
  const imports = new Map<string, Set<string>>()
  for (const [path, targets] of graph) {
    const room = roomOf(path)
    if (notDrawn.includes(room)) continue
    const imported = imports.get(room) ?? new Set()
    imports.set(room, imported)
    for (const target of targets.filter((target) => graph.has(target)).map(roomOf)) {
      if (target !== room && !notDrawn.includes(target)) imported.add(target)
    }
  }
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean => {
    if (from === to) return true
    if (seen.has(from)) return false
    seen.add(from)
    return [...imports.get(from)!].some((next) => reaches(next, to, seen))
  }
  const arrows = Array.from(imports).flatMap(([room, imported]) => {
    const direct = [...imported].filter((target) =>
      ![...imported].some((other) => other !== target && reaches(other, target))
    )
    return direct.length === 0 ? [] : [`  ${nodeOf(room)} --> ${direct.sort().map(nodeOf).join(' & ')}`]
  })
  const groups = ['adapters', 'core'].flatMap((floor) => {
    const rooms = [...imports.keys()].filter((room) => room.startsWith(`${floor}/`))
    return [`  subgraph ${floor}`, ...rooms.map((room) => `    ${nodeOf(room)}[${labelOf(room)}]`), '  end']
  })
  return ['graph TD', '  cli', ...groups, ...arrows.sort()].join('\n')
}

const nodeOf = (room: string): string => room.replace('/', '_')

function labelOf(room: string): string {
  return room === 'core/api' ? '"pipeline, api, …"' : room.split('/')[1]!
}

/** The lines of the page that show a picture. */
export function pictureBlock(picture: string): string {
  return `<!-- imports -->\n\`\`\`mermaid\n${picture}\n\`\`\`\n<!-- /imports -->`
}

if (import.meta.main) {
  const block = pictureBlock(drawRooms(readGraph(fileURLToPath(new URL('../..', import.meta.url)))))
  const page = readFileSync(PICTURE_PAGE, 'utf8')
  writeFileSync(PICTURE_PAGE, page.replace(/<!-- imports -->.*<!-- \/imports -->/s, () => block))
}

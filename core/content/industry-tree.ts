import { echo } from '../admin/echo.ts'
import type { LineError } from './lines.ts'

/** What a line says of an industry's place. */
export interface IndustryPlace {
  readonly line: number
  readonly slug: string
  readonly parent: string | undefined
}

/**
 * What is wrong with the tree of industries once these lines stand: parents that do not exist, and circles.
 *
 * @param stored The industries that exist, each with its parent; `undefined` when not known, and then a
 * parent that no line has is taken to exist.
 */
export function findTreeErrors(
  places: readonly IndustryPlace[],
  stored: ReadonlyMap<string, string | undefined> | undefined,
): LineError[] {
  const parents = new Map(stored)
  for (const { slug, parent } of places) parents.set(slug, parent)
  const circles = findCircles(places, parents)
  return places.flatMap(({ line, slug, parent }) => {
    const circle = circles.get(slug)
    const reason = circle !== undefined
      ? `must not make a circle: ${circle}`
      : stored === undefined || parent === undefined || parents.has(parent)
      ? undefined
      : `must be an industry that exists or stands in this file, not ${echo(parent)}`
    return reason === undefined ? [] : [{ line, field: 'parent_slug', reason }]
  })
}

/** The circle that each industry is part of, in words. Looks at every industry once. */
function findCircles(
  places: readonly IndustryPlace[],
  parents: ReadonlyMap<string, string | undefined>,
): ReadonlyMap<string, string> {
  const circles = new Map<string, string>()
  const seen = new Set<string>()
  for (const place of places) {
    const path: string[] = []
    let slug: string | undefined = place.slug
    while (slug !== undefined && !seen.has(slug)) {
      seen.add(slug)
      path.push(slug)
      slug = parents.get(slug)
    }
    const circle = slug === undefined || !path.includes(slug) ? [] : path.slice(path.indexOf(slug))
    const words = circle.length > 5 ? [...circle.slice(0, 4), '…'] : circle
    for (const member of circle) circles.set(member, [...words, circle[0]].join(' → '))
  }
  return circles
}

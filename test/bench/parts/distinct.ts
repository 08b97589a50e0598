/**
 * The same page over HTTP, but never the same question twice: nothing that is kept can be used. Peers judge their
 * parameters, ask the same store and write the same profiles, without ETag, quota, signed cursor or Link.
 */
import { COUNTRIES, PARTNER } from '../data/profiles.ts'
import { createRandom, pick } from '../data/random.ts'
import { DIRECTORY_PATH } from '../data/tenant.ts'
import { comparisonRow, compete } from '../http/rounds.ts'
import type { Row } from '../report.ts'

export async function run(): Promise<Row[]> {
  const results = await compete({
    kinds: ['ours', 'hono-listing', 'fastify-listing'],
    profileCount: 5000,
    targets: createQuestions,
  })
  return [
    comparisonRow('distinct', 'hono, bearerAuth only', results, ['ours', 'hono-listing'], 1),
    comparisonRow('distinct', 'fastify, bearer-auth only', results, ['ours', 'fastify-listing'], 1),
  ]
}

/** Six of forty countries in any order: two questions are hardly ever the same within a run. */
function createQuestions(): () => string {
  const random = createRandom(1)
  return () => {
    const countries = Array.from({ length: 6 }, () => `&country=${pick(COUNTRIES, random)}`).join('')
    const sort = random() < 0.5 ? '' : '&sort=-published_at'
    return `${DIRECTORY_PATH}?partner=${PARTNER}&limit=20${countries}${sort}`
  }
}

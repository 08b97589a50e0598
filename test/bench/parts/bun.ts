import type { Row } from '../report.ts'
import { runOnFetch } from './on-fetch.ts'

/** The page of `http.ts`, on Bun. */
export function run(): Promise<Row[]> {
  return runOnFetch({ runtime: 'bun', raw: 'Bun.serve', rawTarget: 0.85, peers: ['elysia', 'hono'] })
}

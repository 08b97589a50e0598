import type { Row } from '../report.ts'
import { runOnFetch } from './on-fetch.ts'

/** The page of `http.ts`, on Deno. */
export function run(): Promise<Row[]> {
  return runOnFetch({ runtime: 'deno', raw: 'Deno.serve', rawTarget: 0.9, peers: ['hono'] })
}

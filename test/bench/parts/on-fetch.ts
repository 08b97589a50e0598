import type { ServerKind, ServerRuntime } from '../http/kinds.ts'
import { CACHED_TARGET } from '../data/tenant.ts'
import { comparisonRow, compete } from '../http/rounds.ts'
import type { Row } from '../report.ts'

/** A runtime whose servers take fetch handlers, and who else serves on it. */
export interface FetchContest {
  readonly runtime: Exclude<ServerRuntime, 'node'>
  /** What its own server is called. */
  readonly raw: string
  readonly rawTarget: number
  readonly peers: readonly ('hono' | 'elysia')[]
}

/** The authenticated page of 20 profiles, as `http.ts` has it for Node. */
export async function runOnFetch({ runtime, raw, rawTarget, peers }: FetchContest): Promise<Row[]> {
  const kinds: ServerKind[] = ['raw', 'raw-same-fields', 'ours', 'fetch']
  for (const peer of peers) kinds.push(peer, `${peer}-same-work`)
  const results = await compete({ runtime, kinds, profileCount: 500, targets: () => () => CACHED_TARGET })
  const row = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow(runtime, what, results, [subject, peer], target)
  return [
    row(`raw ${raw}`, 'ours', 'raw', rawTarget),
    row(`raw ${raw} with the same header fields`, 'ours', 'raw-same-fields'),
    ...peers.flatMap((peer) => [
      row(`${peer}, a bearer key only`, 'ours', peer, 1.4),
      row(`${peer}, the same work`, 'ours', `${peer}-same-work`, 1.4),
    ]),
    row(`api.fetch on ${raw}`, 'ours', 'fetch'),
    row('the ceiling: raw with the same header fields, and raw', 'raw-same-fields', 'raw'),
    // No handler of this server can be further ahead of a peer than this.
    ...peers.map((peer) => row(`the ceiling: raw, and ${peer}, a bearer key only`, 'raw', peer)),
  ]
}

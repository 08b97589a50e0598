import { median, times } from '../figures.ts'
import type { Row } from '../report.ts'
import { type ServerChild, startServer } from './child.ts'
import type { ServerKind, ServerRuntime } from './kinds.ts'
import { load } from './load.ts'
import { CORES, whilePinned } from './pinning.ts'

/** How servers are compared. */
export interface Contest {
  /** Default Node. */
  readonly runtime?: ServerRuntime
  readonly kinds: readonly ServerKind[]
  readonly profileCount: number
  /** Makes the targets that are asked for. */
  readonly targets: () => () => string
}

/** What a server did in one round. */
export interface Result {
  /** Processor time of the server for one request. */
  readonly microseconds: number
  readonly requestsPerSecond: number
}

/** All rounds of each server: those of one number were beside each other in time. */
export type Results = ReadonlyMap<ServerKind, readonly Result[]>

const connections = 32
const roundCount = 10
const roundSeconds = 0.75
const warmUpSeconds = 1

/** Loads all servers in turn, round after round, so that what the machine does besides hits all of them alike. */
export async function compete({ runtime, kinds, profileCount, targets }: Contest): Promise<Results> {
  const children = await Promise.all(kinds.map((kind) => startServer(kind, profileCount, runtime)))
  const runners = children.map((child) => ({ child, next: requests(child, targets()) }))
  const rounds = new Map(kinds.map((kind): [ServerKind, Result[]] => [kind, []]))
  try {
    await whilePinned(CORES.loader, async () => {
      for (const { child, next } of runners) await load(child.port, connections, warmUpSeconds, next)
      for (let round = 0; round < roundCount; round++) {
        for (const { child, next } of runners) rounds.get(child.kind)!.push(await measure(child, next))
      }
    })
  } finally {
    for (const child of children) child.stop()
  }
  return rounds
}

async function measure(child: ServerChild, next: () => string): Promise<Result> {
  const before = await child.usedMicroseconds()
  const { answers, seconds } = await load(child.port, connections, roundSeconds, next)
  const used = await child.usedMicroseconds() - before
  return { microseconds: used / answers, requestsPerSecond: answers / seconds }
}

function requests({ key }: ServerChild, target: () => string): () => string {
  const rest =
    ` HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nAuthorization: Bearer ${key}\r\n\r\n`
  return () => `GET ${target()}${rest}`
}

/**
 * How many times less processor time, and how many times more throughput, a server needs than another one: the
 * median of the ratios of rounds that were beside each other, which a machine that gets slower does not change.
 */
export function comparisonRow(
  part: string,
  what: string,
  results: Results,
  [subject, peer]: readonly [ServerKind, ServerKind],
  target?: number,
): Row {
  const [ours, theirs] = [results.get(subject)!, results.get(peer)!]
  const ratio = median(ours.map(({ microseconds }, round) => theirs[round]!.microseconds / microseconds))
  const throughput = median(
    ours.map(({ requestsPerSecond }, round) => requestsPerSecond / theirs[round]!.requestsPerSecond),
  )
  return {
    part,
    what,
    ours: described(ours),
    against: described(theirs),
    ratio: `${times(ratio)} (throughput ${throughput.toFixed(2)})`,
    ...(target !== undefined && { target: `≥ ${target.toFixed(2)} ×`, met: ratio >= target }),
  }
}

function described(rounds: readonly Result[]): string {
  const microseconds = median(rounds.map((round) => round.microseconds))
  const requestsPerSecond = median(rounds.map((round) => round.requestsPerSecond))
  return `${microseconds.toFixed(1)} µs, ${Math.round(requestsPerSecond).toLocaleString('en')}/s`
}

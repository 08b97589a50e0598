import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { CORES, load, pinned, whilePinned } from './load.ts'
import { median, type Row, times } from './report.ts'
import type { ServerKind, ServerRuntime } from './server.ts'

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

/** A server that runs. */
interface ServerChild {
  readonly kind: ServerKind
  readonly port: number
  readonly key: string
  /** Processor time that it has used so far, all of its threads, in microseconds. */
  usedMicroseconds(): Promise<number>
  stop(): void
}

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const binary = (name: string): string => pathOf(`../node_modules/.bin/${name}`)

const programs: Readonly<Record<ServerRuntime, readonly string[]>> = {
  node: [process.execPath],
  bun: [binary('bun')],
  deno: [binary('deno'), 'run', '-A', '-q'],
}

/** Starts a server with so many profiles in memory, and waits until it listens. */
async function startServer(
  kind: ServerKind,
  profileCount: number,
  runtime: ServerRuntime = 'node',
): Promise<ServerChild> {
  const [command, ...words] = pinned(CORES.server, [
    ...programs[runtime],
    pathOf('server.ts'),
    kind,
    String(profileCount),
  ])
  const child = spawn(command!, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { port, key } = await nextMessage<{ port: number; key: string }>(child, kind)
  return {
    kind,
    port,
    key,
    async usedMicroseconds() {
      const message = nextMessage<{ microseconds: number }>(child, kind)
      child.send('usage')
      return (await message).microseconds
    },
    stop: () => void child.kill(),
  }
}

async function nextMessage<T>(child: ChildProcess, kind: ServerKind): Promise<T> {
  const waiting = new AbortController()
  const { signal } = waiting
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error(`The server ${kind} ended by itself.`)
  })
  const message = once(child, 'message', { signal }).then(([value]) => value as T)
  try {
    return await Promise.race([message, ended])
  } finally {
    waiting.abort()
    ended.catch(() => undefined)
  }
}

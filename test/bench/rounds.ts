import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { CORES, load, pinned, whilePinned } from './load.ts'
import { alternate, median, quantile, type Row, times } from './report.ts'
import type { ServerKind } from './server.ts'
import { CACHED_TARGET, VERIFY_BODY, VERIFY_PATH } from './tenant.ts'

/** The work of a server in one round. */
export interface Result {
  /** Processor time of the server for one request. */
  readonly microseconds: number
  readonly requestsPerSecond: number
  readonly p99Milliseconds: number
}

/** The rounds of each server. Rounds with the same index ran next to each other. */
export type Results<Kind extends string = ServerKind> = ReadonlyMap<Kind, readonly Result[]>

/** The arguments of the servers, and what to send to them. */
export interface Contest {
  /** The program that runs the servers, and its arguments. Default: the Node of this process. */
  readonly command?: readonly string[]
  args(kind: string): readonly string[]
  /** The bytes of each request to one server, or what makes them. */
  request(key: string, kind: string): string | (() => string)
}

/** The same request to all servers: a list or, for kinds that end in `verify`, a check of the key. */
export const sameRequest: Contest = {
  args: () => [],
  request: (key, kind) => kind.endsWith('-verify') ? verifyRequest(key) : getRequest(key, CACHED_TARGET),
}

const connections = 32
const roundCount = 10
const roundSeconds = 0.75
const warmUpSeconds = 1

/** Loads all servers in turn, round after round. */
export async function compete<Kind extends string>(
  kinds: readonly Kind[],
  contest: Contest = sameRequest,
): Promise<Results<Kind>> {
  const children = await Promise.all(kinds.map((kind) => startServer(kind, contest)))
  try {
    return await whilePinned(CORES.loader, async () => {
      for (const child of children) await load([child.port], connections, warmUpSeconds, child.request)
      const rounds = await alternate(roundCount, 0, children.map((child) => () => measure(child)))
      return new Map(kinds.map((kind, index) => [kind, rounds[index]!]))
    })
  } finally {
    for (const child of children) child.stop()
  }
}

async function measure(child: ServerChild<string>): Promise<Result> {
  const before = await child.usedMicroseconds()
  const { times: taken, perSecond } = await load([child.port], connections, roundSeconds, child.request)
  const used = await child.usedMicroseconds() - before
  return {
    microseconds: used / taken.length,
    requestsPerSecond: perSecond,
    p99Milliseconds: quantile(taken, 0.99),
  }
}

/**
 * Compares processor time and throughput of two servers: the median of the ratios of rounds that ran next to each other,
 * which does not change if the machine gets slower.
 */
export function comparisonRow<Kind extends string>(
  part: string,
  what: string,
  results: Results<Kind>,
  [subject, peer]: readonly [Kind, Kind],
  target?: number,
): Row {
  const ours = results.get(subject)!
  const theirs = results.get(peer)!
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

/** Compares how long all but one of a hundred responses took: the median of the ratios of neighbouring rounds. */
export function tailRow(
  part: string,
  what: string,
  results: Results,
  [subject, peer]: readonly [ServerKind, ServerKind],
  most: number,
): Row {
  const [ours, theirs] = [subject, peer].map((kind) =>
    results.get(kind)!.map((round) => round.p99Milliseconds)
  )
  const ratio = median(ours!.map((own, round) => own / theirs![round]!))
  return {
    part,
    what,
    ours: `${median(ours!).toFixed(2)} ms`,
    against: `${median(theirs!).toFixed(2)} ms`,
    ratio: times(ratio),
    target: `≤ ${most.toFixed(2)} ×`,
    met: ratio <= most,
  }
}

function described(rounds: readonly Result[]): string {
  const microseconds = median(rounds.map((round) => round.microseconds))
  const requestsPerSecond = median(rounds.map((round) => round.requestsPerSecond))
  return `${microseconds.toFixed(1)} µs, ${Math.round(requestsPerSecond).toLocaleString('en')}/s`
}

/** A running server. */
interface ServerChild<Kind> {
  readonly kind: Kind
  readonly port: number
  readonly request: string | (() => string)
  /** Processor time of all its threads so far, in microseconds. */
  usedMicroseconds(): Promise<number>
  stop(): void
}

const program = fileURLToPath(new URL('server.ts', import.meta.url))

/** Starts a server and waits until it listens. */
async function startServer<Kind extends string>(
  kind: Kind,
  { command: runtime = [process.execPath], args: argsOf, request }: Contest,
): Promise<ServerChild<Kind>> {
  const [command, ...args] = pinned(CORES.server, [...runtime, program, kind, ...argsOf(kind)])
  const child = spawn(command!, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { port, key } = await nextMessage<{ port: number; key: string }>(child, kind)
  return {
    kind,
    port,
    request: request(key, kind),
    async usedMicroseconds() {
      const message = nextMessage<{ microseconds: number }>(child, kind)
      child.send('usage')
      return (await message).microseconds
    },
    stop: () => void child.kill(),
  }
}

export function getRequest(key: string, target: string): string {
  return `GET ${target} HTTP/1.1\r\n${commonFields(key)}\r\n`
}

function verifyRequest(key: string): string {
  return `POST ${VERIFY_PATH} HTTP/1.1\r\n${commonFields(key)}Content-Type: application/json\r\n` +
    `Content-Length: ${VERIFY_BODY.length}\r\n\r\n${VERIFY_BODY}`
}

function commonFields(key: string): string {
  return `Host: 127.0.0.1\r\nAccept: application/json\r\nAuthorization: Bearer ${key}\r\n`
}

async function nextMessage<T>(child: ChildProcess, kind: string): Promise<T> {
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

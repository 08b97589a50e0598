/** Replicas as operators run them: processes of the program that share a store. */
import process from 'node:process'
import type { LogEvent } from '../../../core/log.ts'
import { type Ended, type Served, startServing, stopServing } from '../../support/cli-program.ts'
import { type Client, createClient } from './client.ts'

/** A running replica. */
export interface ReplicaProcess {
  readonly name: string
  readonly client: Client
  /** Its log events so far. */
  events(): readonly LogEvent[]
  /** Suspends it. */
  freeze(): void
  thaw(): void
  /** Ends it with SIGTERM. */
  stop(): Promise<Ended>
}

/** @param args Options of `serve` besides port and name. @throws when it does not listen. */
export async function startReplica(
  name: string,
  storeUrl: string,
  args: readonly string[] = [],
): Promise<ReplicaProcess> {
  const served = await startServing(['serve', '--port', '0', '--replica-name', name, ...args], storeUrl)
  const log = logOf(served)
  const end = (): unknown => served.child.kill('SIGKILL')
  process.on('exit', end)
  const client = createClient(served.url)
  return {
    name,
    client,
    events: () => log,
    freeze: () => void served.child.kill('SIGSTOP'),
    thaw: () => void served.child.kill('SIGCONT'),
    async stop() {
      await client.close()
      const ended = await stopServing(served)
      process.off('exit', end)
      return ended
    },
  }
}

/** Starts several replicas concurrently on one store. */
export function startReplicas(
  count: number,
  storeUrl: string,
  args: readonly string[] = [],
): Promise<readonly ReplicaProcess[]> {
  const names = Array.from({ length: count }, (_, index) => `replica-${index + 1}`)
  return Promise.all(names.map((name) => startReplica(name, storeUrl, args)))
}

function logOf({ child, words }: Served): readonly LogEvent[] {
  const log: LogEvent[] = []
  let rest = ''
  function read(text: string): void {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line.startsWith('{')) log.push(JSON.parse(line))
  }
  read(words)
  child.stderr.on('data', read)
  return log
}

for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => process.exit(1))

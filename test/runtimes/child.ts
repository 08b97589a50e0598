import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ListenOptions } from '../../adapters/runtimes/server.ts'
import { cleanEnv } from '../support/cli-program.ts'
import type { ServedOptions } from '../support/own-endpoints.ts'
import type { Done } from './server.ts'

/** The address of a service. */
export interface Place {
  readonly origin: string
  /** The value of `Host` if one origin has several services. */
  readonly name?: string
}

/** A runtime in its own process. */
export interface ServingChild {
  /** Serves a store. */
  serve(address: string, options: ServedOptions, listening?: ListenOptions): Promise<Place>
  stop(place: Place): Promise<void>
  /** Ends the process. */
  end(): Promise<void>
}

const script = fileURLToPath(new URL('server.ts', import.meta.url))

/** @param command The runtime, and its arguments before the name of a script. */
export function startChild([program = '', ...args]: readonly string[]): ServingChild {
  const child: ChildProcessWithoutNullStreams = spawn(program, [...args, script], { env: cleanEnv() })
  const waiting = new Map<number, (done: Done) => void>()
  let complaints = ''
  let orders = 0
  child.stderr.setEncoding('utf8').on('data', (text: string) => complaints += text)
  createInterface({ input: child.stdout }).on('line', (line) => {
    const done: Done = JSON.parse(line)
    waiting.get(done.id)?.(done)
    waiting.delete(done.id)
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  ended.then(() => {
    for (const [id, resolve] of waiting) resolve({ id, error: `${program} has ended: ${complaints}` })
  })

  async function sendCommand(order: Readonly<Record<string, unknown>>): Promise<Done> {
    const id = orders++
    const done = new Promise<Done>((resolve) => waiting.set(id, resolve))
    child.stdin.write(`${JSON.stringify({ id, ...order })}\n`)
    const { error, ...result } = await done
    if (error !== undefined) throw new Error(error)
    return result
  }

  return {
    async serve(address, options, listening) {
      return { origin: (await sendCommand({ serve: address, options, listening })).url as string }
    },
    stop: async ({ origin }) => void await sendCommand({ stop: origin }),
    async end() {
      child.stdin.end()
      await ended
    },
  }
}

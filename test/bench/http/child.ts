import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { ServerKind, ServerRuntime } from './kinds.ts'
import { CORES, pinned } from './pinning.ts'

/** A server that runs. */
export interface ServerChild {
  readonly kind: ServerKind
  readonly port: number
  readonly key: string
  /** Processor time that it has used so far, all of its threads, in microseconds. */
  usedMicroseconds(): Promise<number>
  stop(): void
}

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const binary = (name: string): string => pathOf(`../../node_modules/.bin/${name}`)

const programs: Readonly<Record<ServerRuntime, readonly string[]>> = {
  node: [process.execPath, pathOf('server.ts')],
  bun: [binary('bun'), pathOf('fetch-server.ts')],
  deno: [binary('deno'), 'run', '-A', '-q', pathOf('fetch-server.ts')],
}

/** Starts a server with so many profiles in memory, and waits until it listens. */
export async function startServer(
  kind: ServerKind,
  profileCount: number,
  runtime: ServerRuntime = 'node',
): Promise<ServerChild> {
  const [command, ...words] = pinned(CORES.server, [...programs[runtime], kind, String(profileCount)])
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

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { freeze, gone, removeSharedMemory, sharedMemoryOf, signal } from './processes.ts'
import { spawnUnprivileged } from './unprivileged.ts'
import { within } from './until.ts'

const maxLogLength = 256 * 1024

export type Postmaster = Awaited<ReturnType<typeof startPostmaster>>

/** @returns A postmaster that takes connections. @throws when it does not start, with its log. */
export async function startPostmaster(command: readonly string[], folder: string) {
  const child = spawnUnprivileged(command, folder, 'QUIT')
  await once(child, 'spawn')
  const pid = child.pid as number
  const exit = once(child, 'exit')
  const isRunning = () => child.exitCode === null && child.signalCode === null
  let log = ''
  let isReady = false
  let holder: ChildProcess | undefined

  const started = Promise.withResolvers<void>()
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-maxLogLength)
    if (!isReady && /ready to accept (?:read-only )?connections/.test(log)) {
      isReady = true
      started.resolve()
    }
  })
  child.once('close', () => started.reject(new Error(`Postgres did not start:\n${log}`)))

  /** Suspends all processes: connections stay open without responses. */
  async function pause(): Promise<void> {
    if (holder !== undefined || !isRunning()) return
    // A stopped process obeys no signal but one: should this one end, that closes the input of the shell, which sends it.
    holder = spawn('/bin/sh', ['-c', 'while read -r pid; do set -- "$@" "$pid"; done; kill -CONT "$@"'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    const { stdin } = holder
    stdin?.on('error', () => {})
    await freeze(pid, (one) => stdin?.write(`${one}\n`))
  }

  async function resume(): Promise<void> {
    if (holder === undefined) return
    const over = once(holder, 'exit')
    holder.stdin?.end()
    holder = undefined
    await over
  }

  /** Kills all processes at once, like a power failure, except for data in the system's buffers. */
  async function kill(): Promise<void> {
    if (isRunning()) {
      const all = await freeze(pid)
      const traces = sharedMemoryOf(all)
      // The postmaster first: it would start others.
      for (const one of all) signal(one, 'SIGKILL')
      await gone(all)
      await within(exit, 'Postgres to be reaped')
      await removeSharedMemory(traces)
    }
    await resume()
  }

  /** Shuts down cleanly: ends sessions and writes everything. */
  async function stop(): Promise<void> {
    await resume()
    if (isRunning()) child.kill('SIGINT')
    await within(exit, 'Postgres to stop', 60_000)
  }

  /** Ends without further writes. */
  async function abandon(): Promise<void> {
    await resume()
    if (isRunning()) child.kill('SIGQUIT')
    await within(exit, 'Postgres to end').catch(kill)
  }

  try {
    await within(started.promise, 'Postgres to start', 60_000)
  } catch (error) {
    await kill()
    throw error
  }
  return { pid, log: () => log, pause, resume, kill, stop, abandon }
}

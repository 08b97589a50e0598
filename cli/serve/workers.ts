/** Several processes of `serve` on one port: the supervisor that runs them, and what each of them does for it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { constants, hostname } from 'node:os'
import process from 'node:process'
import type { MetricsSample } from '../../adapters/metrics.ts'
import type { RunningServer } from '../../adapters/runtimes/server.ts'
import { delay } from '../../core/lib/promise.ts'
import type { Invocation } from '../command.ts'
import { CliError, toCliError, usageError } from '../errors.ts'
import { interrupts } from '../files.ts'
import { withStore } from '../store/open.ts'
import { createLog } from './log.ts'
import {
  listenFailure,
  listenForMetrics,
  type Measured,
  type ServerSettings,
  serveUntilStopped,
  type WorkerChannel,
} from './server.ts'

/** Milliseconds from the request to stop until a worker is killed. It usually ends before. */
const stopTimeoutMs = 10_000
/** Milliseconds before a worker is replaced: doubled for each one in a row that ended before `stableMs`. */
const backOff = { firstMs: 100, longestMs: 10_000, stableMs: 10_000 }
const sampleTimeoutMs = 2_000
/** Workers that may end in a row, while no other accepts connections. */
const maxFailures = 5
/** Characters of a line of a worker that are kept until its end arrives. */
const maxLineLength = 65_536
const placeVariable = 'PARTNER_API_WORKER'

/** What a worker needs beside the arguments of its supervisor, from which it gets it in the environment. */
interface Place {
  /** From 1 on. A worker that replaces another one takes its number. */
  readonly number: number
  readonly port: number
}

/** From a worker to its supervisor: it accepts connections, its metrics, or why it cannot serve. */
type WorkerMessage =
  | { readonly url: string }
  | { readonly samples: readonly MetricsSample[]; readonly isReady: boolean }
  | Pick<CliError, 'exitCode' | 'code' | 'message'>

/** The place of this process, if a supervisor started it. */
export function currentPlace(): Place | undefined {
  const place = process.env[placeVariable]
  return place === undefined || process.send === undefined ? undefined : JSON.parse(place)
}

/** Serves as one of the workers of a supervisor, which is the parent process. */
export async function serveAsWorker(
  invocation: Invocation,
  { api, ...settings }: ServerSettings,
  { number, port }: Place,
): Promise<void> {
  const send = (message: WorkerMessage) =>
    new Promise<void>((resolve) => process.send!(message, () => resolve()))
  const orphaned = new Promise<void>((resolve) => process.once('disconnect', resolve))
  const drain = new Promise<void>((resolve) => {
    process.on('message', (message) => message === 'drain' && resolve())
  })
  const worker: WorkerChannel = {
    stop: Promise.race([drain, orphaned]),
    orphaned,
    answerSamples({ sample, isReady }) {
      process.on('message', async (message) => {
        if (message === 'sample') await send({ samples: await sample(), isReady: await isReady() })
      })
    },
  }
  const replicaName = `${api.replicaName ?? `${hostname()}:${process.ppid}`}/${number}`
  const own = { ...settings, port, worker, api: { ...api, replicaName } }
  try {
    await withStore(
      invocation,
      { create: true, shareLimits: true },
      (store) => serveUntilStopped(store, own, (url) => send({ url })),
    )
    // The channel would keep the process running.
    process.disconnect?.()
  } catch (error) {
    const { exitCode, code, message } = toCliError(error)
    await send({ exitCode, code, message })
    process.exit(exitCode)
  }
}

/** Keeps `count` workers running until SIGTERM, SIGINT or SIGHUP, then lets all of them finish their requests. */
export async function superviseWorkers(
  count: number,
  { port, host, log: level, opened, metrics, drainDelay = 0 }: ServerSettings,
  onListening: (url: string, metricsUrl?: string) => Promise<void>,
): Promise<void> {
  const log = createLog(level)
  const running = new Set<ChildProcess>()
  const killAll = () => running.forEach((child) => child.kill('SIGKILL'))
  const stop = new AbortController()
  const stopped = once(stop.signal, 'abort')
  for (const signal of interrupts) {
    process.on(signal, () => {
      if (!stop.signal.aborted) return stop.abort()
      killAll()
      process.exit(128 + constants.signals[signal])
    })
  }
  log.event('store_opened', opened)
  const sharedPort = await findPort(port, host)
  const fleet = createFleet(count, sharedPort, { log, running, stop: stop.signal })
  let listener: RunningServer | undefined
  const runs = Array.from({ length: count }, (_, index) => fleet.keepRunning(index + 1))
  const ended = Promise.race([stopped, Promise.all(runs)])
  try {
    const url = await Promise.race([fleet.started, ended])
    if (typeof url === 'string') {
      listener = metrics && await listenForMetrics(fleet.measured, metrics)
      await onListening(url, listener?.url)
    }
    await ended
  } finally {
    stop.abort()
    running.forEach((child) => child.connected && child.send('drain'))
    setTimeout(killAll, stopTimeoutMs + drainDelay * 1000).unref()
    await Promise.allSettled(runs)
    await listener?.drain()
    log.event('stopped')
    log.flush()
  }
}

/** The workers of a supervisor. `started` is fulfilled with their address when all accept connections. */
function createFleet(count: number, port: number, { log, running, stop }: {
  readonly log: ReturnType<typeof createLog>
  readonly running: Set<ChildProcess>
  readonly stop: AbortSignal
}) {
  const listening = new Set<ChildProcess>()
  const started = Promise.withResolvers<string>()
  const samples = createSamples(listening, stop)
  let hasStarted = false

  /** Runs a worker to its end. @returns Why it ended. */
  async function run(number: number): Promise<CliError> {
    const child = startWorker({ number, port })
    const { pid } = child as { readonly pid: number }
    let failure: CliError | undefined
    running.add(child)
    forwardLines(child, number, log.forward)
    // It could not be started, or ended before a message was sent. `close` follows.
    child.on('error', (error) => failure ??= toCliError(error))
    child.on('message', (message: WorkerMessage) => {
      if ('code' in message) failure = new CliError(message.exitCode, message.code, message.message)
      if ('samples' in message) samples.keep(child, message.samples)
      if ('url' in message) {
        listening.add(child)
        log.event('worker_started', { worker: number, pid })
        hasStarted ||= listening.size === count
        if (hasStarted) started.resolve(message.url)
      }
    })
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
      child.on('close', (...ending) => resolve(ending))
    })
    running.delete(child)
    listening.delete(child)
    samples.end(child)
    const ending = signal === null ? { exit_code: code! } : { signal }
    if (!stop.aborted) log.event('worker_exited', { level: 'warn', worker: number, pid, ...ending })
    const reason = signal === null ? `exit code ${code}` : signal
    return failure ?? new CliError(1, 'worker_failed', `Worker ${number} ended with ${reason}.`)
  }

  return {
    started: started.promise,
    measured: samples.measured,

    /** Replaces a worker that ends. @throws why it could not serve, at the start or when no worker can. */
    async keepRunning(number: number): Promise<void> {
      for (let failures = 0; !stop.aborted;) {
        const startedAt = performance.now()
        const reason = await run(number)
        if (stop.aborted) return
        failures = performance.now() - startedAt > backOff.stableMs ? 0 : failures + 1
        if (!hasStarted || (listening.size === 0 && failures >= maxFailures)) throw reason
        const pauseMs = Math.min(backOff.firstMs * 2 ** failures, backOff.longestMs)
        await delay(pauseMs, stop).catch(() => undefined)
      }
    },
  }
}

/** The last metrics of each worker, and the counters of those that have ended: a sum that falls looks like a restart. */
function createSamples(listening: ReadonlySet<ChildProcess>, stop: AbortSignal) {
  const last = new Map<ChildProcess, readonly MetricsSample[]>()
  let endedCounters = Promise.resolve<MetricsSample>([])
  let asking: Promise<boolean> | undefined

  /** Asks all workers for their metrics. @returns Whether one that answers in time is ready. */
  async function ask(): Promise<boolean> {
    const answers = [...listening].map(async (child) => {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(sampleTimeoutMs) })
      child.send('sample')
      const [message] = await answer as [WorkerMessage]
      return 'samples' in message && message.isReady
    })
    const settled = await Promise.allSettled(answers)
    return settled.some((each) => each.status === 'fulfilled' && each.value)
  }

  /** Requests that arrive together share the answers. */
  const askOnce = () => asking ??= ask().finally(() => asking = undefined)
  const measured: Measured = {
    async sample() {
      await askOnce()
      const running = [...last.values()].flat()
      return [await endedCounters, ...running]
    },
    isReady: async () => await askOnce() && !stop.aborted,
  }

  return {
    measured,
    keep: (child: ChildProcess, samples: readonly MetricsSample[]) => void last.set(child, samples),
    end(child: ChildProcess): void {
      const samples = last.get(child) ?? []
      if (!last.delete(child)) return
      endedCounters = endedCounters.then(async (ended) =>
        (await import('../../adapters/metrics.ts')).sumCounters([ended, ...samples])
      )
    },
  }
}

function startWorker(place: Place): ChildProcess {
  return spawn(process.execPath, [...programArguments(), ...process.argv.slice(2)], {
    env: { ...process.env, [placeVariable]: JSON.stringify(place) },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
}

/** What the runtime needs before the arguments of the program; nothing in a single-file executable. */
function programArguments(): readonly string[] {
  const [, script = ''] = process.argv
  const { Deno } = globalThis as { readonly Deno?: { readonly build: { readonly standalone: boolean } } }
  if (Deno !== undefined) {
    if (Deno.build.standalone) return []
    // Deno has no execArgv, and Linux forgets its arguments when the title of the process is set.
    const words = readFileSync('/proc/self/cmdline', 'utf8').split('\0').slice(1, -1)
    const end = words.length - process.argv.length + 2
    const isComplete = words.slice(end).join('\0') === process.argv.slice(2).join('\0')
    return isComplete ? words.slice(0, end) : ['run', '--allow-all', script]
  }
  const isEmbedded = script.startsWith('/$bunfs/') || process.getBuiltinModule('node:sea')?.isSea()
  return isEmbedded ? [] : [...process.execArgv, script]
}

/** Passes on whole lines, so that those of several workers do not mix, with the number of the worker in each event. */
function forwardLines({ stderr }: ChildProcess, worker: number, forward: (lines: string) => void): void {
  let rest = ''
  const pass = (lines: string) => forward(lines.replace(/^\{(?=")/gm, `{"worker":${worker},`))
  stderr!.setEncoding('utf8')
    .on('data', (chunk: string) => {
      const end = chunk.lastIndexOf('\n') + 1
      if (end > 0) pass(rest + chunk.slice(0, end))
      rest = (end > 0 ? '' : rest) + chunk.slice(end)
      if (rest.length <= maxLineLength) return
      pass(`${rest}\n`)
      rest = ''
    })
    .on('end', () => rest !== '' && pass(`${rest}\n`))
}

/**
 * The port that all workers listen on. A first listener without SO_REUSEPORT takes a free port, and fails if another
 * program uses the port: workers would share it even with another supervisor.
 */
async function findPort(port: number, host: string): Promise<number> {
  if (process.platform !== 'linux') {
    throw usageError('Only Linux spreads connections over --workers. Start servers on ports of their own.')
  }
  const probe = createServer().listen({ port, host })
  await once(probe, 'listening').catch((error) => {
    throw listenFailure(error, '--port', { port, host })
  })
  const found = (probe.address() as AddressInfo).port
  await new Promise((resolve) => probe.close(resolve))
  return found
}

import process from 'node:process'
import type { MetricsSample } from '../../adapters/metrics.ts'
import { type CliError, toCliError } from '../errors.ts'
import type { MetricsListenerSources } from './metrics-listener.ts'

/** What a worker needs beside the arguments of its supervisor, from which it gets it in the environment. */
export interface Place {
  /** From 1 on. A worker that replaces another one takes its number. */
  readonly number: number
  readonly port: number
}

export const PLACE_VARIABLE = 'PARTNER_API_WORKER'

/** What a worker tells its supervisor: that it accepts connections, its metrics, or why it cannot serve. */
export type WorkerMessage =
  | { readonly url: string }
  | { readonly samples: readonly MetricsSample[]; readonly isReady: boolean }
  | Pick<CliError, 'exitCode' | 'code' | 'message'>

/** The place of this process, if a supervisor started it. */
export function currentPlace(): Place | undefined {
  const place = process.env[PLACE_VARIABLE]
  return place === undefined || process.send === undefined ? undefined : JSON.parse(place)
}

export interface WorkerChannel {
  /** Resolves when the supervisor says so, or has ended. */
  readonly stop: Promise<void>
  /** Resolves when the supervisor has ended. */
  readonly orphaned: Promise<void>
  onListening(url: string): Promise<void>
  /** Answers the questions of the supervisor for metrics. */
  answerSamples(sources: MetricsListenerSources): void
}

export async function runWorker(serve: (channel: WorkerChannel) => Promise<void>): Promise<void> {
  const send = (message: WorkerMessage) =>
    new Promise<void>((resolve) => process.send!(message, () => resolve()))
  const orphaned = new Promise<void>((resolve) => process.once('disconnect', resolve))
  const drain = new Promise<void>((resolve) => {
    process.on('message', (message) => message === 'drain' && resolve())
  })
  try {
    await serve({
      stop: Promise.race([drain, orphaned]),
      orphaned,
      onListening: (url) => send({ url }),
      answerSamples({ sample, isReady }) {
        process.on('message', async (message) => {
          if (message === 'sample') await send({ samples: await sample(), isReady: await isReady() })
        })
      },
    })
    // The channel would keep the process running.
    process.disconnect?.()
  } catch (error) {
    const { exitCode, code, message } = toCliError(error)
    await send({ exitCode, code, message })
    process.exit(exitCode)
  }
}

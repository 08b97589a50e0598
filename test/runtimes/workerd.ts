import { ROOT } from '../package/installed.ts'
import { startWorker } from '../support/workerd-process.ts'
import type { ServingChild } from './child.ts'
import type { DurableWish } from './durable-worker.ts'

/** Starts workerd with `durable-worker.ts`, which serves PostgreSQL databases. */
export async function startDurable(): Promise<ServingChild> {
  const { url: origin, callOperator, end } = await startWorker('test/runtimes/durable-worker.ts', ROOT, {
    durableObjects: { SERVICE: 'Service' },
    hasOperator: true,
  })
  const wish = (what: DurableWish): Promise<unknown> => callOperator(what)
  let names = 0
  return {
    async serve(url, options) {
      const name = `database-${names++}.test`
      await wish({ start: name, url, options })
      return { origin, name }
    },
    stop: async ({ name = '' }) => void await wish({ stop: name }),
    end,
  }
}

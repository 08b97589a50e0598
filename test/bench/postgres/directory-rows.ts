import type { Store } from '../../../core/ports/store.ts'
import { figure, median, quantile } from '../figures.ts'
import type { Row } from '../report.ts'
import { storeReader, timePages } from '../sqlite/reading.ts'
import { SERVER_QUESTIONS } from './questions.ts'

/** Pages of a store with that many profiles, as long as they take without the service around it. */
export async function timeDirectory(store: Pick<Store, 'listProfiles'>, count: number): Promise<Row[]> {
  const result: Row[] = []
  for (const kind of SERVER_QUESTIONS) {
    const times = await timePages(kind, storeReader(store))
    const targetMs = kind.ask(() => 0).word === undefined ? 2 : 10
    result.push({
      part: 'postgres',
      what: `page of ${count.toLocaleString('en')}: ${kind.name}`,
      ours: `p50 ${figure(median(times), 'ms')}, p99 ${figure(quantile(times, 0.99), 'ms')}`,
      target: `p50 ≤ ${targetMs} ms`,
      met: median(times) <= targetMs,
    })
  }
  return result
}

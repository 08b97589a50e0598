/**
 * The whole pipeline in one process, with a reply that is kept, against Hono's `app.fetch` doing the same work.
 * Rounds are short and alternate, so that whatever else the machine does hits both. Neither answer's body is read,
 * which spares Hono more than us: our bytes are ready.
 */
import { openMemoryStore } from '../support/memory-store.ts'
import { honoSameWork } from './hono.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { alternate, figure, median, type Row, times } from './report.ts'
import { CACHED_TARGET, createService, exchangeFor, fill, issueKey, readyAnswer } from './tenant.ts'

const rounds = 150
const warmUps = 40
const calls = { ours: 6_000, hono: 1_000 }

export async function run(): Promise<Row[]> {
  const store = await openMemoryStore()
  await fill(store, 500)
  const key = await issueKey(store)
  const service = createService(store)
  const hono = honoSameWork(key, await readyAnswer(service, key))

  const exchange = exchangeFor(CACHED_TARGET, key)
  const request = requestFor(key)
  const again = await alternate(rounds, warmUps, [
    () => timeOurs(service.handle, () => exchange),
    () => timeAsync(hono.fetch, () => request),
  ])
  // A server never sees the same string twice: what V8 remembers of one (its hash, for one) is not there yet.
  const fresh = await alternate(rounds, warmUps, [
    () => timeOurs(service.handle, () => exchangeFor(copy(CACHED_TARGET), copy(key))),
    () => timeAsync(hono.fetch, () => requestFor(copy(key))),
  ])
  await service.close()
  return [...rowsOf('the same request again', again), ...rowsOf('a request never seen', fresh)]
}

type Handle = ReturnType<typeof createService>['handle']
type Answer = { readonly status: number }

/** @returns Nanoseconds a request. */
export async function timeOurs(handle: Handle, make: () => HttpRequest, count = calls.ours): Promise<number> {
  const exchanges = Array.from({ length: count }, make)
  let wrong = 0
  const startedAt = performance.now()
  for (const exchange of exchanges) {
    const answer = handle(exchange)
    // Not awaited: nothing has to be waited for, and the Node adapter does not wait either.
    if (answer instanceof Promise || answer.status !== 200) wrong++
  }
  const nanoseconds = nanosecondsEach(startedAt, count)
  if (wrong > 0) throw new Error(`${wrong} requests were not answered at once with 200.`)
  return await Promise.resolve(nanoseconds)
}

/** The same for a handler that may return promises. */
export async function timeAsync<R>(
  handle: (request: R) => Answer | Promise<Answer>,
  make: () => R,
  count = calls.hono,
): Promise<number> {
  const requests = Array.from({ length: count }, make)
  let wrong = 0
  const startedAt = performance.now()
  for (const request of requests) {
    const answer = handle(request)
    if ((answer instanceof Promise ? await answer : answer).status !== 200) wrong++
  }
  const nanoseconds = nanosecondsEach(startedAt, count)
  if (wrong > 0) throw new Error(`${wrong} requests were not answered with 200.`)
  return nanoseconds
}

function nanosecondsEach(startedAt: number, count: number): number {
  return (performance.now() - startedAt) * 1e6 / count
}

export function requestFor(key: string, target = CACHED_TARGET): Request {
  return new Request(`http://127.0.0.1${target}`, {
    headers: { accept: 'application/json', authorization: `Bearer ${key}` },
  })
}

/** The same text in a string of its own. */
function copy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function rowsOf(what: string, results: readonly number[][]): Row[] {
  const [ours, hono] = results as [number[], number[]]
  const middle = median(ours)
  // Of rounds that were beside each other: what slows the machine down for a while then hits both.
  const ratio = median(hono.map((theirs, round) => theirs / ours[round]!))
  return [
    {
      part: 'pipeline',
      what: `${what}, best round`,
      ours: figure(Math.min(...ours), 'ns'),
      against: `hono ${figure(Math.min(...hono), 'ns')}`,
      ratio: times(Math.min(...hono) / Math.min(...ours)),
    },
    {
      part: 'pipeline',
      what: `${what}, median`,
      ours: figure(middle, 'ns'),
      against: `hono ${figure(median(hono), 'ns')}`,
      ratio: times(ratio),
      target: '≤ 1,000 ns, ≥ 8 ×',
      met: middle <= 1000 && ratio >= 8,
    },
  ]
}

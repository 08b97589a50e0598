/** What twenty own endpoints cost the built-in ones, and one of them against the built-in list and Hono. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Store } from '../../core/ports/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { honoPages } from './hono.ts'
import { OWN_TARGETS, ownEndpoints } from './own-endpoints.ts'
import { requestFor, timeAsync } from './pipeline.ts'
import { alternate, figure, median, type Row, times } from './report.ts'
import { comparisonRow, compete, getRequest } from './rounds.ts'
import type { ServerKind } from './server.ts'
import { CACHED_TARGET, createService, exchangeFor, fill, issueKey } from './tenant.ts'

export async function run(): Promise<Row[]> {
  return [...await builtInRows(), ...await pageRows(), ...await httpRows()]
}

/** Of several processes, which differ by some per cent even without own endpoints. */
async function builtInRows(): Promise<Row[]> {
  const program = new URL('own-child.ts', import.meta.url)
  const children = Array.from({ length: 8 }, (_, index) => fork(program, [index % 2 ? '20' : '0']))
  try {
    await Promise.all(children.map((child) => once(child, 'message')))
    const rounds = children.map((child) => async () => {
      child.send('round')
      return (await once(child, 'message'))[0] as number[]
    })
    const results = await alternate(60, 40, rounds)
    return ['cached list', 'verify-key', 'plans, uncached'].map((what, kind) => {
      const [none, twenty] = [0, 1].map((start) =>
        results.filter((_, index) => index % 2 === start).flat().map((each) => each[kind]!)
      )
      return row(`${what}: 20 own endpoints, and none`, twenty, none, 0.98)
    })
  } finally {
    for (const child of children) child.kill()
  }
}

/** In one process, without sockets: the handler, and the same as a fetch handler. No body is read. */
async function pageRows(): Promise<Row[]> {
  const store = await openMemoryStore()
  await fill(store, 500)
  const key = await issueKey(store)
  const options = { responseCacheBytes: 0, endpoints: ownEndpoints(store) }
  const { handle, fetch, protect, close } = createService(store, options)
  const listProfiles: Store['listProfiles'] = async (...query) => await store.listProfiles(...query)
  const promising = createService({ ...store, listProfiles }, options)
  const hono = honoPages(key, store, true)
  const bare = () => Response.json({ data: 'the same' })
  const route = { name: 'a', method: 'GET', path: '/a', scope: 'read:profiles', summary: 'A' } as const
  const guarded = protect(route, bare)
  const [builtIn, own, revised, promised, builtInPromised, fetched, plain, open, checked] = await alternate(
    100,
    40,
    [
      ...[CACHED_TARGET, ...OWN_TARGETS].map((target) => () =>
        timeAsync(handle, () => exchangeFor(target, key), 200)
      ),
      () => timeAsync(promising.handle, () => exchangeFor(CACHED_TARGET, key), 200),
      () => timeAsync(fetch, () => requestFor(key, OWN_TARGETS[0]), 200),
      () => timeAsync(hono.fetch, () => requestFor(key), 200),
      () => timeAsync(bare, () => requestFor(key), 200),
      () => timeAsync(guarded, () => requestFor(key), 200),
    ],
  )
  await Promise.all([close(), promising.close()])
  return [
    row('page: own, and built-in uncached', own, builtIn, 0.9),
    row('page, with promises: own, and built-in uncached', promised, builtInPromised, 0.9),
    row('page: own with a revision but uncached, and built-in uncached', revised, builtIn, 0.9),
    row('page by fetch: own, and hono', fetched, plain, 1.3),
    row('protected route by fetch, and its handler alone', checked, open),
  ]
}

async function httpRows(): Promise<Row[]> {
  const own: readonly ServerKind[] = ['own', 'own-revision']
  const results = await compete<ServerKind>([...own, 'ours-uncached', 'hono-plain-pages', 'hono-pages'], {
    args: () => [],
    request: (key, kind) => getRequest(key, OWN_TARGETS[own.indexOf(kind as ServerKind)] ?? CACHED_TARGET),
  })
  const compare = (what: string, subject: ServerKind, peer: ServerKind, target?: number) =>
    comparisonRow('own', `page over HTTP: ${what}`, results, [subject, peer], target)
  return [
    compare('own, and built-in uncached', 'own', 'ours-uncached', 0.9),
    compare('own, and hono', 'own', 'hono-plain-pages', 1.3),
    compare('own, cached by its revision, and hono', 'own-revision', 'hono-plain-pages', 1.3),
    compare('own, and hono, the same work', 'own', 'hono-pages'),
  ]
}

/** The ratio is that of rounds that were beside each other: what slows the machine down for a while then hits both. */
function row(what: string, ours: number[] = [], theirs: number[] = [], target?: number): Row {
  const ratio = median(theirs.map((peer, round) => peer / ours[round]!))
  return {
    part: 'own',
    what,
    ours: figure(median(ours), 'ns'),
    against: figure(median(theirs), 'ns'),
    ratio: times(ratio),
    ...(target !== undefined && { target: `≥ ${target.toFixed(2)} ×`, met: ratio >= target }),
  }
}

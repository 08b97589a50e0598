/**
 * What servers, a primary and its standbys have to do for some traffic, from measured costs of each kind of work. Rates are
 * per second, costs are microseconds of processor time, and requests are independent of each other: those of a key to a
 * server arrive at random.
 */
/** Processor time of the primary, and of the server that asks. */
export type Cost = readonly [postgres: number, server: number]

export const KINDS = ['cached', 'page', 'search', 'verify', 'signup'] as const
export type Kind = (typeof KINDS)[number]

export interface Constants {
  /** When they were measured, and on what. */
  readonly date: string
  readonly machine: string
  /** Of each piece of work. `…Row` is for each row of a statement that has several. */
  readonly costs: Readonly<
    Record<
      | ('poll' | 'confirm' | 'beatPerServer' | 'notify' | 'lookUp' | 'lookUpRow' | 'openWindow' | 'lease')
      | ('flush' | 'flushRow' | 'use' | 'useRow' | 'change' | 'connect'),
      Cost
    >
  >
  /** Of a request without limits, with a cached key, among others of its kind. */
  readonly requests: Readonly<Record<Kind, Cost>>
  /**
   * How often a mix of requests costs what the sum of these says: on one server that has a processor, and on as many as
   * measured all costs, which take turns. What works in between takes the place of each in the caches of the processor.
   */
  readonly mixed: { readonly alone: Cost; readonly inTurn: Cost }
  /** A server under load. */
  readonly server: { readonly bytes: number; readonly connections: number; readonly backendBytes: number }
  /** Bytes that a server has for each cached key. */
  readonly memory: { readonly key: number; readonly keyAndPartner: number }
  /** Bytes of a row with its indexes. */
  readonly disk: Readonly<Record<'key' | 'usage' | 'signup' | 'profile', number>>
}

export interface Traffic {
  readonly servers: number
  /** The primary is in one of them. */
  readonly regions: number
  /** Milliseconds to the primary and back from other regions, and within its own. */
  readonly roundTripMs?: readonly [far: number, near: number]
  readonly requests: number
  /** Shares of the requests. */
  readonly mix: Readonly<Record<Kind, number>>
  /** Keys with requests. */
  readonly activeKeys: number
  /** Servers that requests of a key reach: 1 with a balancer that goes by the key, all with one that takes turns. */
  readonly spread: number
  /** Changes of partners and keys, and of content. */
  readonly changes: number
  readonly contentChanges: number
  readonly maxStalenessMs?: number
  /** Requests of a key in a window, of each limit. */
  readonly quotas?: Readonly<Record<'key' | 'verify' | 'signup', number>>
  readonly windowSeconds?: number
  /** Milliseconds by which standbys are behind, which answer what they can; `undefined` without them. */
  readonly standbyLagMs?: number | undefined
}

/** The servers that the costs are measured with. */
export const SERVERS = 4

/** @returns What requests cost in a mix of them, by the number of servers that take turns on the processors. */
export function amongOthers(constants: Constants, servers: number): Constants {
  const { alone, inTurn } = constants.mixed
  const weight = Math.log(servers) / Math.log(SERVERS)
  const factor = (side: 0 | 1) => alone[side] ** (1 - weight) * inTurn[side] ** weight
  const requests = Object.fromEntries(
    KINDS.map((kind): [Kind, Cost] => {
      const [postgres, server] = constants.requests[kind]
      return [kind, [postgres * factor(0), server * factor(1)]]
    }),
  ) as Constants['requests']
  return { ...constants, requests }
}

/** As the code has them. */
export const HEARTBEAT_SECONDS = 2
const heldShare = 0.02
const cachedKeys = 10_000
export const FLUSH_SECONDS = 2
export const ROWS_PER_FLUSH = 100
const maxFlushed = 40_000
const useIntervalSeconds = 60

/** What all of them have to do in a second. */
export function predict(
  { costs, requests, server }: Pick<Constants, 'costs' | 'requests' | 'server'>,
  traffic: Traffic,
) {
  const { servers, regions, mix, activeKeys, spread, changes, contentChanges, standbyLagMs } = traffic
  const [farMs, nearMs] = traffic.roundTripMs ?? [80, 0.5]
  const { requests: rate, maxStalenessMs = 1_000, windowSeconds = 60 } = traffic
  const quotas = traffic.quotas ?? { key: 600, verify: 30, signup: 20 }
  // Of a key and a server, each of which has so many.
  const pairs = activeKeys * spread / servers
  const pairRate = rate / activeKeys / spread

  // A server polls some time after its last confirmation, or when a change is notified.
  const pollsFrom = (roundTripMs: number) => {
    const pauseS = (Math.min(Math.max(maxStalenessMs / 2.5, 50), 1_000) + 2 * roundTripMs) / 1_000
    const notified = changes + contentChanges
    const perServer = notified > 0 ? notified / (1 - Math.exp(-notified * pauseS)) : 1 / pauseS
    return Math.min(perServer, 1_000 / (2 * roundTripMs + 1))
  }
  // Of these, one for each change is written, and one for each heartbeat.
  const beats = servers / HEARTBEAT_SECONDS
  const polls = servers * (pollsFrom(nearMs) + (regions - 1) * pollsFrom(farMs)) / regions
  const confirms = Math.min(polls, beats + servers * (changes + contentChanges))

  // A cached key is looked up again after each change; the cache evicts keys by halves.
  const missedByChange = changes / (changes + pairRate)
  const missedBySize = Math.max(0, 1 - 0.75 * cachedKeys / pairs)
  const lookUps = rate * (1 - (1 - missedByChange) * (1 - missedBySize))
  // At most two statements of a server are in flight: what arrives meanwhile shares the next.
  const lookUpMs = (nearMs + (regions - 1) * farMs) / regions + 0.5
  const batch = Math.max(1, lookUps / servers * lookUpMs / 1_000 / 2)

  const limits = [
    leasesOf((1 - mix.verify) * rate, quotas.key),
    leasesOf(mix.verify * rate, quotas.verify),
    leasesOf(mix.signup * rate, quotas.signup),
  ]
  const leases = limits.reduce((sum, limit) => sum + limit.leases, 0)
  const opened = limits.reduce((sum, limit) => sum + limit.opened, 0)

  /**
   * Leases of a limit, and windows that they open. A window lasts from the first request of a key; each server that meets
   * the key leases a portion at a time.
   */
  function leasesOf(rate: number, quota: number) {
    if (rate === 0) return { leases: 0, opened: 0 }
    const cycle = windowSeconds + activeKeys / rate
    const opened = activeKeys / cycle
    const requests = rate / activeKeys * cycle / spread
    const share = Math.floor(quota * heldShare)
    const portion = Math.max(1, Math.floor(Math.max(share / servers, share / (spread + 1))))
    return { leases: opened * spread * expectedPortions(requests, portion), opened }
  }

  const flushed = servers * Math.min(
    maxFlushed,
    [1 - mix.verify - mix.signup, mix.verify, mix.signup].reduce(
      (sum, share) => sum + pairs * (1 - Math.exp(-pairRate * share * FLUSH_SECONDS)),
      0,
    ),
  ) / FLUSH_SECONDS
  const flushes = Math.max(flushed / ROWS_PER_FLUSH, Math.min(flushed, servers / FLUSH_SECONDS))
  const uses = servers * pairs * pairRate / (1 + pairRate * useIntervalSeconds)
  const useWrites = Math.min(uses, servers)

  const costOf = (kind: Kind) => rate * mix[kind] * requests[kind][0]
  const spent = {
    polls: polls * costs.poll[0] + confirms * costs.confirm[0] + beats * servers * costs.beatPerServer[0],
    'look-ups': lookUps * (costs.lookUpRow[0] + costs.lookUp[0] / batch),
    limits: (leases - opened) * costs.lease[0] + opened * costs.openWindow[0],
    usage: flushes * costs.flush[0] + flushed * costs.flushRow[0] + useWrites * costs.use[0] +
      uses * costs.useRow[0],
    pages: costOf('page') + costOf('search'),
    checks: costOf('verify'),
    signups: costOf('signup'),
    changes: changes * costs.change[0] + (changes + contentChanges) * servers * costs.notify[0],
  }
  // A standby that has not replayed the last change of a kind answers nothing about it. Each read asks it for its revision.
  const movedBy = (changes: number) =>
    standbyLagMs === undefined ? 0 : Math.exp(-changes * standbyLagMs / 1_000)
  const [movedLookUps, movedPages] = [movedBy(changes), movedBy(contentChanges)]
  const standby = movedLookUps * (spent['look-ups'] + lookUps / batch * costs.poll[0]) +
    movedPages * (spent.pages + rate * (mix.page + mix.search) * costs.poll[0])
  spent['look-ups'] *= 1 - movedLookUps
  spent.pages *= 1 - movedPages

  const ownCost = polls * costs.poll[1] + confirms * costs.confirm[1] + leases * costs.lease[1] +
    lookUps * (costs.lookUpRow[1] + costs.lookUp[1] / batch) +
    flushes * costs.flush[1] + flushed * costs.flushRow[1] + useWrites * costs.use[1] +
    uses * costs.useRow[1] +
    rate * KINDS.reduce((sum, kind) => sum + mix[kind] * requests[kind][1], 0)
  return {
    /** Microseconds a second of the primary. */
    spent,
    /** Processors. */
    primary: Object.values(spent).reduce((sum, cost) => sum + cost, 0) / 1e6,
    standby: standby / 1e6,
    /** Of a server, for a request. */
    microseconds: ownCost / rate,
    connections: servers * server.connections,
  }
}

/** The mean of ⌈n / size⌉ for a Poisson-distributed n. */
function expectedPortions(mean: number, size: number): number {
  if (mean > 200) return mean / size + (size - 1) / (2 * size)
  let [probability, below, sum] = [Math.exp(-mean), 0, 0]
  for (let count = 0; count < mean + 12 * Math.sqrt(mean) + 30; count++) {
    below += probability
    // P(n > count), once for each portion that begins there.
    if (count % size === 0) sum += Math.max(0, 1 - below)
    probability *= mean / (count + 1)
  }
  return sum
}

/**
 * Milliseconds until servers refuse a revoked key: each is notified, polls the primary, which serves all polls in turn, and
 * confirms.
 *
 * @returns Sorted.
 */
export function simulateRevocation(
  { costs }: Constants,
  traffic: Traffic,
  { cores, busy }: { readonly cores: number; readonly busy: number },
): number[] {
  const { servers, regions } = traffic
  const [farMs, nearMs] = traffic.roundTripMs ?? [80, 0.5]
  // What is left of each core for this change.
  const slowness = 1 / Math.max(0.02, 1 - busy) / 1_000
  const free = Array.from({ length: cores }, () => 0)
  const serve = (at: number, cost: number): number => {
    const core = free.indexOf(Math.min(...free))
    return free[core] = Math.max(free[core]!, at) + cost * slowness
  }
  const jobs = Array.from({ length: servers }, (_, index) => {
    const oneWay = (index % regions === 0 ? nearMs : farMs) / 2
    return { at: serve(0, costs.notify[0]) + 2 * oneWay, oneWay, cost: costs.poll[0], isPoll: true }
  })
  const delays: number[] = []
  // In the order of arrival. A confirmation joins the queue a round trip after its poll was answered.
  const queue = jobs.toSorted((a, b) => a.at - b.at)
  while (queue.length > 0) {
    const job = queue.shift()!
    const done = serve(job.at, job.cost) + job.oneWay
    if (!job.isPoll) continue
    delays.push(done)
    const confirmation = { ...job, at: done + job.oneWay, cost: costs.confirm[0], isPoll: false }
    const place = queue.findIndex(({ at }) => at > confirmation.at)
    queue.splice(place < 0 ? queue.length : place, 0, confirmation)
  }
  return delays.sort((a, b) => a - b)
}

/**
 * After the primary or all servers have started at once, servers connect, no key is cached, and no window is leased. Serves
 * what arrives in steps of 10 ms.
 *
 * @returns Seconds until requests wait for less than 100 ms.
 */
export function simulateColdStart(
  { costs, server }: Constants,
  { servers, requests, activeKeys, spread }: Traffic,
  { cores, busy }: { readonly cores: number; readonly busy: number },
): number {
  const step = 0.01
  const served = cores * (1 - busy) * 1e6 * step
  const pairRate = requests / activeKeys / spread
  let waiting = servers * server.connections * costs.connect[0]
  let until = 0
  for (let at = 0; at < 600; at += step) {
    // The share of requests that are the first of their key at their server.
    const first = Math.exp(-pairRate * at)
    waiting += requests * step * first * (costs.lookUpRow[0] + costs.lease[0]) - served
    waiting = Math.max(0, waiting)
    if (waiting > 10 * served) until = at
  }
  return until
}

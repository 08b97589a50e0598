import type { Door } from './door.ts'
import { createEntrance } from './entrance.ts'
import type { Session } from './session.ts'
import { explain, unreachable } from './sql-error.ts'

/** Connections of which each is used by one at a time. */
export interface Pool {
  /**
   * A connection, for as long as it is not given back.
   *
   * @param withinMs Milliseconds to wait for one, default `timeoutMs`.
   * @throws {StoreError} `unreachable` when there is none in time.
   */
  take(withinMs?: number): Promise<Session>
  giveBack(session: Session): void
  /** Hands out none of the connections any more that there are. */
  replaceAll(): void
  /** Hands out nothing more, and waits for what is out, but not longer than for `late`. */
  close(late: Promise<void>): Promise<void>
}

export interface PoolOptions {
  /** Where the server is, for messages. */
  readonly place: string
  /** Connections at most. */
  readonly size: number
  /** Milliseconds for which to wait for a connection that others use. */
  readonly timeoutMs: number
  /** Milliseconds for which to wait for a server that cannot be reached. */
  readonly patienceMs: number
}

/** Who waits for a connection. */
interface Waiter {
  readonly resolve: (session: Session) => void
  readonly reject: (error: unknown) => void
  readonly timer: NodeJS.Timeout
  readonly since: number
}

/** Long statements are silent. After this long it is asked whether there still is a server. */
const silenceMs = 2_000

export function createPool(door: Door, options: PoolOptions): Pool {
  const { place, size, timeoutMs, patienceMs } = options
  const idle = new Set<Session>()
  const busy = new Set<Session>()
  /** Connections that are not of this generation are not handed out any more. */
  const generations = new WeakMap<Session, number>()
  let generation = 0
  const waiters = new Set<Waiter>()
  let opening = 0
  let isClosed = false
  let drained: (() => void) | undefined

  const entrance = createEntrance(door, {
    settings: {},
    silenceMs,
    silent: (session) => void look(session),
    keepsAlive: true,
  })

  /** A statement may take its time: only a server that does not even greet is gone. */
  async function look(session: Session): Promise<void> {
    const heardAt = session.heardAt()
    if (await door.isAnswering(session.host, silenceMs) || session.heardAt() !== heardAt) return
    session.lose('the server does not answer any more')
  }

  function take(withinMs: number = timeoutMs): Promise<Session> {
    if (isClosed) return Promise.reject(unreachable(place, 'it was closed'))
    const [session] = idle
    if (session !== undefined) {
      idle.delete(session)
      busy.add(session)
      return Promise.resolve(session)
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        fail(waiter, unreachable(place, entrance.failure()?.message ?? 'all connections are in use'))
      }, withinMs)
      const waiter = { resolve, reject, timer, since: performance.now() }
      waiters.add(waiter)
      openMore()
    })
  }

  function openMore(): void {
    while (opening < waiters.size && idle.size + busy.size + opening < size) void openOne()
  }

  async function openOne(): Promise<void> {
    opening++
    const since = generation
    try {
      const session = await entrance.open(isWanted)
      opening--
      session?.whenLost(() => forget(session))
      if (isClosed || since !== generation) await session?.end()
      else if (session?.isLost() === false) {
        generations.set(session, since)
        provide(session)
      }
    } catch (error) {
      opening--
      // Otherwise they wait for one that is in use.
      if (busy.size === 0) { for (const waiter of waiters) fail(waiter, explain(place, error)) }
    }
    openMore()
  }

  /** Asked after each failure: tells who has waited long enough for a server that is away. */
  function isWanted(): boolean {
    const reason = entrance.failure()
    if (reason !== undefined && busy.size === 0) {
      for (const waiter of waiters) {
        if (performance.now() - waiter.since >= patienceMs) fail(waiter, explain(place, reason))
      }
    }
    return waiters.size > 0
  }

  function provide(session: Session): void {
    const [waiter] = waiters
    if (waiter === undefined) return void idle.add(session)
    settle(waiter)
    busy.add(session)
    waiter.resolve(session)
  }

  function forget(session: Session): void {
    idle.delete(session)
    openMore()
  }

  function giveBack(session: Session): void {
    busy.delete(session)
    if (isClosed || generations.get(session) !== generation) void session.end()
    else if (!session.isLost()) provide(session)
    openMore()
    if (busy.size === 0) drained?.()
  }

  function fail(waiter: Waiter, error: unknown): void {
    settle(waiter)
    waiter.reject(error)
  }

  function settle(waiter: Waiter): void {
    clearTimeout(waiter.timer)
    waiters.delete(waiter)
  }

  return {
    take,
    giveBack,

    replaceAll() {
      generation++
      for (const session of idle) session.lose('it is replaced')
    },

    async close(late) {
      isClosed = true
      for (const waiter of waiters) fail(waiter, unreachable(place, 'it was closed'))
      const done = new Promise<void>((resolve) => drained = resolve)
      if (busy.size > 0) await Promise.race([done, late])
      for (const session of busy) session.lose('the store was closed')
      await Promise.all(Array.from(idle, (session) => session.end()))
    },
  }
}

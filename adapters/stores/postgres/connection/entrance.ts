import type { Door } from './door.ts'
import type { Purpose, Session } from './session.ts'
import { isFinal, type Lost } from './sql-error.ts'

/** Where connections for one purpose come from, no faster than a server that fails can take. */
export interface Entrance {
  /**
   * Opens a connection, again and again.
   *
   * @param isWanted Whether to go on after a failure.
   * @returns undefined once it is not wanted any more.
   * @throws {Lost} when the server answered, and would answer so again.
   */
  open(isWanted: () => boolean): Promise<Session | undefined>
  /** Why the last attempt failed, unless it did not. */
  failure(): Lost | undefined
}

/** Unless somebody has more time, a server that comes back is found within this. */
const shortPauseMs = 250

/** A connection that lasts for less is a failed attempt: a server may take connections and drop them, on and on. */
const shortLifeMs = 1000

/** How long to wait before another attempt: longer each time, and not the same for all who lost one server. */
export function pauseAfter(attempts: number, maxPauseMs: number = shortPauseMs): number {
  return Math.min(maxPauseMs, 15 * 2 ** attempts) * (0.5 + Math.random() / 2)
}

export function createEntrance(door: Door, purpose: Purpose, maxPauseMs: number = shortPauseMs): Entrance {
  let failures = 0
  let notBefore = 0
  let failure: Lost | undefined

  function slowDown(): void {
    notBefore = performance.now() + pauseAfter(++failures, maxPauseMs)
  }

  function watchLife(session: Session): Session {
    const since = performance.now()
    session.whenLost(() => {
      if (performance.now() - since < shortLifeMs) slowDown()
      else failures = 0
    })
    return session
  }

  return {
    failure: () => failure,

    async open(isWanted) {
      for (;;) {
        const pauseMs = notBefore - performance.now()
        if (pauseMs > 0) {
          await door.pause(pauseMs)
          if (!isWanted()) return undefined
        }
        if (door.isClosed()) return undefined
        try {
          const session = await door.open(purpose)
          failure = undefined
          return watchLife(session)
        } catch (error) {
          failure = error as Lost
          slowDown()
          if (isFinal(error)) throw error
        }
        if (!isWanted()) return undefined
      }
    },
  }
}

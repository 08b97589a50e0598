import type { Database, Query } from './database.ts'
import type { Door } from './door.ts'
import { createEntrance } from './entrance.ts'
import type { Session } from './session.ts'
import { isRefusal } from './sql-error.ts'

/** What replicas tell each other through the server. `replace` gives the connection up for another one. */
type Notices = Pick<Database, 'listen' | 'notify' | 'close'> & { replace(): void }

const channel = 'partner_api'

/** Nobody waits for this connection: a server that is away is tried no more often than this. */
const maxPauseMs = 2_000

/** How often the connection is tried when nothing is heard on it, and how long an answer may take. */
const checkEveryMs = 5_000
const silenceMs = 2_000

/**
 * @param note Sends what need not be on the disk.
 * @param canListen Whether there is a connection of the server's that stays ours.
 */
export function createNotices(door: Door, note: Query, canListen: boolean): Notices {
  const listeners = new Set<() => void>()
  let session: Session | undefined
  let isAttending = false
  let canNotify = true
  let isClosed = false

  const entrance = createEntrance(door, {
    settings: {},
    silenceMs,
    silent: (one) => one.lose(`no answer within ${silenceMs} ms`),
    keepsAlive: false,
    heard: tellAll,
  }, maxPauseMs)

  function tellAll(): void {
    for (const heard of listeners) heard()
  }

  async function attend(): Promise<void> {
    while (!isClosed) {
      try {
        session = await entrance.open(() => !isClosed)
        if (isClosed) return void session?.end()
        if (session === undefined) return
        await session.tell(`LISTEN ${channel}`)
        // Something may have been said before.
        tellAll()
        await end(session)
      } catch (error) {
        // Not every server that is asked like Postgres can do this, and this one will not learn it.
        if (isRefusal(error)) return void session?.end()
        session?.lose('it could not listen')
      }
    }
  }

  function end(attended: Session): Promise<void> {
    const timer = setInterval(check, checkEveryMs).unref()
    return new Promise((resolve) =>
      attended.whenLost(() => {
        clearInterval(timer)
        resolve()
      })
    )
  }

  /** An empty statement, which no statistics of the server's count. */
  function check(): void {
    session?.tell('').catch(() => undefined)
  }

  return {
    replace: () => session?.lose('it is replaced'),

    listen(heard) {
      if (isClosed) return
      listeners.add(heard)
      if (isAttending || !canListen) return
      isAttending = true
      void attend()
    },

    async notify() {
      if (!canNotify) return
      try {
        await note(`NOTIFY ${channel}`)
      } catch (error) {
        if (isRefusal(error)) canNotify = false
      }
    },

    async close() {
      isClosed = true
      listeners.clear()
      await session?.end()
    },
  }
}

import { userInfo } from 'node:os'
import process from 'node:process'
import { parseAddress } from './address.ts'
import type { Database } from './database.ts'
import { createDoor } from './door.ts'
import { createLink } from './link.ts'
import { createNotices } from './notices.ts'
import { createPool } from './pool.ts'
import { unreachable } from './sql-error.ts'
import { createStatements } from './statements.ts'
import { createTransaction } from './transaction.ts'

/** How patient to be. */
export interface ConnectOptions {
  /** Milliseconds, 20 or more, default 1,000: within these a look-up or a note is answered or given up. */
  readonly lookUpTimeoutMs?: number
  /** Milliseconds, 20 or more, default 10,000: within these any other single statement is. */
  readonly timeoutMs?: number
}

/** How long a server that cannot be reached is tried by who has more time than a look-up. */
const patienceMs = 2_000

/** What is under way when the store is closed has this long to end, and its connections half a second more. */
const closeMs = 1_500

/**
 * Opens connections to a database when they are first needed; none keeps a process alive that waits for no answer.
 *
 * @param url See `parseAddress`.
 * @throws {StoreError} `refused` when the address cannot be used.
 */
export function connect(url: string, options: ConnectOptions = {}): Database {
  const { lookUpTimeoutMs = 1_000, timeoutMs = 10_000 } = options
  const address = parseAddress(url, { environment: process.env, user: whoRunsThis() })
  const { place } = address
  // Half of its time: a look-up on a connection that died unnoticed is answered on another one.
  const silenceMs = lookUpTimeoutMs / 2
  const door = createDoor(address, address.connectTimeoutMs ?? silenceMs)
  const pool = createPool(door, { place, size: address.connections, timeoutMs, patienceMs })

  const settings = { statement_timeout: String(lookUpTimeoutMs) }
  const link = { place, timeoutMs: lookUpTimeoutMs }
  const lookUps = createLink(door, {
    ...link,
    settings,
    silenceMs,
    isRepeatable: true,
    // The server may be gone, or no longer the one: nothing is to be read elsewhere than where the revision is.
    lost() {
      pool.replaceAll()
      notices.replace()
    },
  })
  const notes = createLink(door, {
    ...link,
    settings: { ...settings, synchronous_commit: 'off' },
    silenceMs: lookUpTimeoutMs,
    isRepeatable: false,
  })
  const notices = createNotices(door, notes.query, !address.isPooled)
  let closed: Promise<void> | undefined

  async function close(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, closeMs)
    await Promise.all([lookUps.close(late), notes.close(late), pool.close(late), notices.close()])
    clearTimeout(timer)
    door.close()
  }

  return {
    place,
    lookUp: lookUps.query,
    leaveReadOnly() {
      if (!address.primaryOnly) return
      const reason = 'the server takes no writes any more'
      lookUps.replace(reason)
      throw unreachable(place, reason)
    },
    note: notes.query,
    ...createStatements(pool, place, timeoutMs),
    transaction: createTransaction(pool, place, Math.ceil(lookUpTimeoutMs / 4)),
    listen: notices.listen,
    notify: notices.notify,
    close: () => closed ??= close(),
  }
}

/** As libpq does, the user of the operating system, if it knows one. */
function whoRunsThis(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}

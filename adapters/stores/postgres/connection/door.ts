import type { Socket } from 'node:net'
import { type Address, type Host, nameOf } from './address.ts'
import { type Closing, createClosing } from './closing.ts'
import { dial, isAnswering, type Way } from './dial.ts'
import { createSession, type Purpose, type Session } from './session.ts'
import { watchSilence } from './silence.ts'
import { isAboutStartup, isFinal, Lost, reasonOf } from './sql-error.ts'

/** The way to whichever server of an address takes writes now. */
export interface Door extends Closing {
  /**
   * Opens a connection, trying each server once, the one that was found last before the others.
   *
   * @throws {Lost} with a reason for each, when none will do.
   */
  open(purpose: Purpose): Promise<Session>
  /** Whether a server answers at all within so many milliseconds, however busy it is. */
  isAnswering(host: Host, withinMs: number): Promise<boolean>
}

/** @param silenceMs Milliseconds for which a server may say nothing while a connection to it is made. */
export function createDoor(address: Address, silenceMs: number): Door {
  const { hosts, tls } = address
  const closing = createClosing()
  let found = 0

  const wayTo = (host: Host): Way => ({ host, tls, silenceMs, closing })

  async function enter(host: Host, purpose: Purpose): Promise<Session> {
    const socket = await dial(wayTo(host))
    const session = createSession(socket, host, address, purpose)
    try {
      await greeting(socket, session)
      if (closing.isClosed()) throw new Lost('the store was closed')
      return session
    } catch (error) {
      void session.end()
      throw error
    }
  }

  async function greeting(socket: Socket, session: Session): Promise<void> {
    const watch = watchSilence(silenceMs, () => session.lose(`no answer within ${silenceMs} ms`), false)
    socket.on('data', watch.heard)
    const forget = closing.whenClosed(() => session.lose('the store was closed'))
    watch.waiting(true)
    try {
      if (address.primaryOnly) await checkPrimary(session)
      else await session.tell('')
    } finally {
      watch.stop()
      socket.off('data', watch.heard)
      forget()
    }
  }

  async function open(purpose: Purpose): Promise<Session> {
    const failures: (readonly [Host, unknown])[] = []
    const start = found
    for (let tries = 0; tries < hosts.length; tries++) {
      const index = (start + tries) % hosts.length
      try {
        const session = await enter(hosts[index]!, purpose)
        found = index
        return session
      } catch (error) {
        failures.push([hosts[index]!, error])
      }
    }
    throw summaryOf(failures)
  }

  return {
    ...closing,
    open,
    isAnswering: (host, withinMs) => isAnswering({ ...wayTo(host), silenceMs: withinMs }),
  }
}

/** The semicolon has it sent as it is: nobody will ask for it again on this connection. */
const stateQuery =
  `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on';`

async function checkPrimary(session: Session): Promise<void> {
  const [row] = await session.ask<[isStandby: boolean, isReadOnly: boolean]>(stateQuery)
  const [isStandby, isReadOnly] = row!
  if (isStandby) throw new Lost('the server is a standby')
  if (isReadOnly) throw new Lost('the server takes no writes')
}

function summaryOf(failures: readonly (readonly [Host, unknown])[]): Lost {
  const reasons = failures.map(([host, error]) =>
    failures.length === 1 ? adviceOn(error) : `${nameOf(host)}: ${adviceOn(error)}`
  )
  const [first] = failures
  const code = failures.every(([, error]) => isFinal(error)) ? (first![1] as Lost).code : undefined
  return new Lost(reasons.join('; '), code)
}

function adviceOn(error: unknown): string {
  const reason = reasonOf(error)
  return error instanceof Lost && isAboutStartup(error)
    ? `${reason} (behind a pooler in transaction mode, the address needs pooler=transaction)`
    : reason
}

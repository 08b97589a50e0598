/** Connections that are replaced when they are lost, and who may use them. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresConnection } from './connection.ts'
import { ConnectionLostError } from './errors.ts'

/** A place for one connection, which is replaced when it is lost. */
export interface Slot {
  /** @returns Undefined when it has to be opened. */
  current(): PostgresConnection | undefined
  open(): Promise<PostgresConnection>
}

/** Slots that are used by one at a time. */
export interface Pool {
  /** @param deadline By `performance.now()`. */
  take(deadline: number, isWrite: boolean): Slot | Promise<Slot>
  release(slot: Slot, wasWrite: boolean): void
  /** Resolves when all slots are free, or at the deadline. */
  close(deadline: number): Promise<void>
}

/** @param epoch Connections of an earlier one are replaced, too. */
export function createSlot(connect: () => Promise<PostgresConnection>, epoch: () => number): Slot {
  let connection: PostgresConnection | undefined
  let opening: Promise<PostgresConnection> | undefined
  let openedAt = -Infinity
  let openedIn = 0
  let attempts = 0

  async function open(): Promise<PostgresConnection> {
    connection?.destroy('it was replaced')
    // Also when a server takes connections only to drop them.
    attempts = performance.now() - openedAt < 1_000 ? attempts + 1 : 0
    if (attempts > 0) await pause(attempts)
    openedAt = performance.now()
    openedIn = epoch()
    return connection = await connect()
  }

  return {
    current: () => connection?.isLost() === false && openedIn === epoch() ? connection : undefined,
    open: () => opening ??= open().finally(() => opening = undefined),
  }
}

/**
 * Writes leave one of several slots to reads: when a synchronous standby is lost, every commit waits for seconds.
 *
 * @param late Makes the error for what has waited for a slot until its deadline.
 */
export function createPool(slots: readonly Slot[], late: () => Error): Pool {
  const idle = [...slots]
  const waiting = new Set<PromiseWithResolvers<Slot> & { readonly isWrite: boolean }>()
  const mostWrites = Math.max(1, slots.length - 1)
  let writes = 0

  const mayTake = (isWrite: boolean): boolean => !isWrite || writes < mostWrites

  function take(deadline: number, isWrite: boolean): Slot | Promise<Slot> {
    const slot = mayTake(isWrite) ? idle.findLast((slot) => slot.current()) ?? idle.at(-1) : undefined
    if (slot) {
      if (isWrite) writes++
      return idle.splice(idle.indexOf(slot), 1)[0]!
    }
    const waiter = { ...Promise.withResolvers<Slot>(), isWrite }
    waiting.add(waiter)
    return before(deadline, waiter.promise, late).finally(() => waiting.delete(waiter))
  }

  return {
    take,

    release(slot: Slot, wasWrite: boolean): void {
      if (wasWrite) writes--
      const waiter = waiting.values().find(({ isWrite }) => mayTake(isWrite))
      if (!waiter) {
        idle.push(slot)
        return
      }
      if (waiter.isWrite) writes++
      waiting.delete(waiter)
      waiter.resolve(slot)
    },

    async close(deadline: number): Promise<void> {
      for (const { reject } of waiting) reject(new ConnectionLostError('it was closed'))
      waiting.clear()
      await Promise.allSettled(slots.map(() => take(deadline, false)))
    },
  }
}

/** Rejects at the deadline, by `performance.now()`. */
export function before<T>(deadline: number, promise: Promise<T>, late: () => Error): Promise<T> {
  if (deadline === Infinity) return promise
  return new Promise((resolve, reject) => {
    // Immediate: after this process was suspended, what arrived during that time is read first.
    const giveUp = () => setImmediate(() => reject(late()))
    const timer = setTimeout(giveUp, Math.max(0, deadline - performance.now()))
    promise.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}

/** Waits, longer after each attempt, and not for the same time in all processes that have lost one server. */
export async function pause(attempts: number): Promise<void> {
  await sleep(Math.min(250, 15 * 2 ** attempts) * (0.5 + Math.random() / 2))
}

import type { Revision } from '../../../../core/ports.ts'
import type { Membership, Replica } from '../../../../core/replicas/registry.ts'
import { StoreError } from '../../store-error.ts'

/** What the store is told of a replica. */
export interface Registration {
  /** Lists the replica, for good when it resolves. */
  enter(): Promise<void>
  /** Says what the replica has applied, and lists it again when it is not listed any more. @returns Live replicas. */
  confirm(revision: Revision): Promise<number>
  /** Strikes it off the list. */
  leave(): Promise<void>
}

/**
 * Milliseconds, beyond its lease, for which a replica is listed after it was heard of last: what it learns until then is
 * used up before it is off the list.
 */
export const LISTED_FOR_MS = 60_000

/** How long leaving may take when the store does not answer: it is found out by itself then. */
const leaveWithinMs = 2_000

/**
 * Confirms one revision after another from the moment at which a replica is listed until it leaves: as often as the
 * replica wants, and whenever there may be news. What fails is tried again at the next time; until then the replica
 * uses less and less of what it knows, and the store knows why.
 *
 * @param heed Has what it is given called whenever there may be news, until what it returns is called.
 */
export function createMembership(
  { confirm, confirmEveryMs }: Replica,
  registration: Registration,
  heed: (hurry: () => void) => () => void,
): Membership {
  let state: 'outside' | 'inside' | 'left' = 'outside'
  let entering: Promise<void> | undefined
  let isConfirming = false
  let isHurried = false
  let confirmation: Promise<number> | undefined
  let timer: NodeJS.Timeout | undefined
  let live = 1
  /** When what the store heard of the replica last was sent, and the day: a machine that sleeps has no other clock. */
  let sent = { at: 0, date: 0 }
  let ignore = (): void => undefined

  async function enter(): Promise<void> {
    const now = instant()
    try {
      await registration.enter()
    } finally {
      entering = undefined
    }
    refuseWhoLeft()
    sent = now
    state = 'inside'
    ignore = heed(hurry)
    hurry()
  }

  function refuseWhoLeft(): void {
    if (state === 'left') {
      throw new StoreError('unreachable', 'The store was left: it tells this replica no more.')
    }
  }

  function hurry(): void {
    isHurried = true
    if (isConfirming) return
    clearTimeout(timer)
    void confirmOnAndOn()
  }

  async function confirmOnAndOn(): Promise<void> {
    isConfirming = true
    while (isHurried && state === 'inside') {
      // What is heard of from now on may be too late for this confirmation.
      isHurried = false
      await confirmOnce().catch(() => undefined)
    }
    isConfirming = false
    if (state === 'inside') timer = setTimeout(hurry, confirmEveryMs).unref()
  }

  async function confirmOnce(): Promise<void> {
    const revision = await confirm()
    // Who has left is not to be listed again.
    if (state !== 'inside') return
    const now = instant()
    confirmation = registration.confirm(revision)
    live = await confirmation
    sent = now
  }

  async function strikeOff(): Promise<void> {
    await entering?.catch(() => undefined)
    await confirmation?.catch(() => undefined)
    await registration.leave()
  }

  return {
    joined() {
      refuseWhoLeft()
      // Who was cut off or stood still for longer may have been given up meanwhile. Half of it, for clocks differ.
      if (state === 'inside' && ageOf(sent) < LISTED_FOR_MS / 2) return undefined
      return entering ??= enter()
    },

    size: () => live,

    async leave() {
      const wasOutside = state === 'outside' && entering === undefined
      if (state === 'left') return
      state = 'left'
      clearTimeout(timer)
      ignore()
      if (wasOutside) return
      let deadline: NodeJS.Timeout | undefined
      const overdue = new Promise<void>((resolve) => deadline = setTimeout(resolve, leaveWithinMs))
      await Promise.race([strikeOff().catch(() => undefined), overdue])
      clearTimeout(deadline)
    },
  }
}

function instant(): { at: number; date: number } {
  return { at: performance.now(), date: Date.now() }
}

function ageOf({ at, date }: { at: number; date: number }): number {
  return Math.max(performance.now() - at, Date.now() - date)
}

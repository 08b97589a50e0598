import { createKeyAdministration } from '../../../core/admin/keys.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Client } from './client.ts'
import { PARTNER, READ } from './tenant.ts'

/** An operator who issues keys and revokes them, and clients who go on with them. */
export interface Revoking {
  /** What the operator was told is revoked. */
  readonly revoked: readonly { readonly id: string; readonly at: number }[]
  /** Requests that were accepted although they were asked that long after. */
  readonly accepted: readonly { readonly id: string; readonly afterMs: number }[]
  stop(): Promise<void>
}

/** How long clients go on with a key after its revocation. */
const afterwardsMs = 2500
const pauseMs = 20

export function startRevoking(clients: readonly Client[], store: Store): Revoking {
  const keys = createKeyAdministration(store, { actor: 'trial' })
  const revoked: { id: string; at: number }[] = []
  const accepted: { id: string; afterMs: number }[] = []
  const using: Promise<unknown>[] = []
  let isOver = false

  /** Until it is done: an operator whose command fails repeats it. */
  async function insist<T>(command: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await command()
      } catch {
        await pause()
      }
    }
  }

  async function goOn(client: Client, id: string, key: string, isRevokedAt: () => number): Promise<void> {
    while (performance.now() < isRevokedAt() + afterwardsMs) {
      const { status, askedAt } = await client.ask(READ, { key })
      if (status === 200 && askedAt > isRevokedAt()) accepted.push({ id, afterMs: askedAt - isRevokedAt() })
      await pause()
    }
  }

  async function revokeOne(): Promise<void> {
    const { key: { id }, text } = await insist(() =>
      keys.issue({ partner: PARTNER, name: 'doomed', environment: 'live' })
    )
    let at = Infinity
    using.push(...clients.map((client) => goOn(client, id, text, () => at)))
    await pause()
    await insist(() => keys.revoke(id))
    revoked.push({ id, at: at = performance.now() })
  }

  const operator = (async () => {
    while (!isOver) {
      await revokeOne()
      await pause()
    }
  })()

  return {
    revoked,
    accepted,
    async stop() {
      isOver = true
      await operator
      await Promise.all(using)
    },
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pauseMs))
}

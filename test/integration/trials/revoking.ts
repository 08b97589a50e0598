import { createKeyAdministration } from '../../../core/admin/keys.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Client } from './client.ts'
import { PARTNER, READ } from './tenant.ts'

/** An operator who issues and revokes keys, and clients that continue to use them. */
export interface Revoking {
  /** Keys whose revocation was acknowledged. */
  readonly revoked: readonly { readonly id: string; readonly at: number }[]
  /** The number of accepted requests that were sent more than this long after the revocation. */
  readonly accepted: readonly { readonly id: string; readonly afterMs: number }[]
  stop(): Promise<void>
}

/** How long clients use a key after its revocation. */
const afterwardsMs = 2500
const pauseMs = 20

export function startRevoking(clients: readonly Client[], store: Store): Revoking {
  const keys = createKeyAdministration(store, { actor: 'trial' })
  const revoked: { id: string; at: number }[] = []
  const accepted: { id: string; afterMs: number }[] = []
  const using: Promise<unknown>[] = []
  let isOver = false

  /** Repeats a command until it succeeds. */
  async function retry<T>(command: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await command()
      } catch {
        await pause()
      }
    }
  }

  async function useKey(client: Client, id: string, key: string, isRevokedAt: () => number): Promise<void> {
    while (performance.now() < isRevokedAt() + afterwardsMs) {
      const { status, askedAt } = await client.send(READ, { key })
      if (status === 200 && askedAt > isRevokedAt()) accepted.push({ id, afterMs: askedAt - isRevokedAt() })
      await pause()
    }
  }

  async function revokeOne(): Promise<void> {
    const { key: { id }, text } = await retry(() =>
      keys.issue({ partner: PARTNER, name: 'doomed', environment: 'live' })
    )
    let at = Infinity
    using.push(...clients.map((client) => useKey(client, id, text, () => at)))
    await pause()
    await retry(() => keys.revoke(id))
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

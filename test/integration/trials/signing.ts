import type { Client, Reply } from './client.ts'
import { PARTNER } from './tenant.ts'

/** A signup that got 201. */
export interface Acknowledged extends Pick<Reply, 'askedAt' | 'answeredAt'> {
  readonly number: number
  readonly id: string
}

/** Clients that send signups until stopped. */
export interface Signing {
  readonly acknowledged: readonly Acknowledged[]
  /** The number of attempts that were repeated because they were not acknowledged. */
  retries(): number
  /** Starts no more signups, and resolves when all pending ones are acknowledged. */
  stop(): Promise<void>
}

const retryAfterMs = 50

/** Each signup goes to one replica, and after a failure to another with the same idempotency key. */
export function startSigning(clients: readonly Client[], key: string, atOnce: number): Signing {
  const acknowledged: Acknowledged[] = []
  let retries = 0
  let next = 0
  let isOver = false

  async function signUp(number: number): Promise<void> {
    for (let attempt = number;; attempt++) {
      const { client, body } = { client: clients[attempt % clients.length]!, body: bodyOf(number) }
      const reply = await client.send('/partner/signups', { key, body, idempotencyKey: `trial-${number}` })
      if (reply.status === 201) {
        const { askedAt, answeredAt } = reply
        acknowledged.push({ number, id: JSON.parse(reply.body).data.id, askedAt, answeredAt })
        return
      }
      retries++
      await new Promise((resolve) => setTimeout(resolve, retryAfterMs))
    }
  }

  const all = Promise.all(Array.from({ length: atOnce }, async () => {
    while (!isOver) await signUp(next++)
  }))
  return {
    acknowledged,
    retries: () => retries,
    async stop() {
      isOver = true
      await all
    },
  }
}

/** The body of the nth signup. */
export function bodyOf(number: number): unknown {
  return { partner: PARTNER, email: `someone${number}@mail.example`, name: `Someone ${number}` }
}

import type { Client, Reply } from './client.ts'
import { PARTNER } from './tenant.ts'

/** A signup that was answered with 201. */
export interface Acknowledged extends Pick<Reply, 'askedAt' | 'answeredAt'> {
  readonly number: number
  readonly id: string
}

/** People who sign up as long as they are let. */
export interface Signing {
  readonly acknowledged: readonly Acknowledged[]
  /** How many attempts were made again, because nobody acknowledged them. */
  retries(): number
  /** Lets nobody begin any more, and resolves when everybody who had begun is acknowledged. */
  stop(): Promise<void>
}

const retryAfterMs = 50

/** Each asks some replica, and when it does not answer well, another one with the same idempotency key. */
export function startSigning(clients: readonly Client[], key: string, atOnce: number): Signing {
  const acknowledged: Acknowledged[] = []
  let retries = 0
  let next = 0
  let isOver = false

  async function signUp(number: number): Promise<void> {
    for (let attempt = number;; attempt++) {
      const { client, body } = { client: clients[attempt % clients.length]!, body: bodyOf(number) }
      const reply = await client.ask('/partner/signups', { key, body, idempotencyKey: `trial-${number}` })
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

/** The same for the same number. */
export function bodyOf(number: number): unknown {
  return { partner: PARTNER, email: `someone${number}@mail.example`, name: `Someone ${number}` }
}

import type { Signup } from '../../../core/ports/signups.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Client, Reply } from './client.ts'
import { PARTNER } from './tenant.ts'
import { check } from './verdict.ts'

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

/**
 * Each signup goes to one replica, and after a failure to another with the same idempotency key.
 *
 * @param first The number of the first signup.
 */
export function startSigning(clients: readonly Client[], key: string, atOnce: number, first = 0): Signing {
  const acknowledged: Acknowledged[] = []
  let retries = 0
  let next = first
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

/** Checks that a store has the acknowledged signups, each once, and no others. */
export async function checkSignups(
  store: Store,
  acknowledged: readonly string[],
  retries: number,
): Promise<void> {
  const kept = await allSignups(store)
  const ids = new Set(kept.map(({ id }) => id))
  const people = new Set(kept.map(({ email }) => email))
  const lost = acknowledged.filter((id) => !ids.has(id)).length
  console.log(
    `  ${acknowledged.length} signups acknowledged, ${retries} attempts were repeated, ${kept.length} are kept`,
  )
  check(`no acknowledged signup is lost (${lost})`, lost === 0)
  check(`no signup is stored twice (${kept.length - people.size})`, kept.length === people.size)
  check('every stored signup was acknowledged', ids.size === new Set(acknowledged).size)
}

async function allSignups(store: Store): Promise<readonly Signup[]> {
  const all: Signup[] = []
  for (;;) {
    const page = await store.listSignups(undefined, all.at(-1), 1000)
    if (page.length === 0) return all
    all.push(...page)
  }
}

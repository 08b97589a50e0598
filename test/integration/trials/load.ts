/** What clients and operators of a trial do until they are stopped, and the outcome. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createKeyAdministration } from '../../../core/admin/keys.ts'
import type { Signup } from '../../../core/ports/signups.ts'
import type { Store } from '../../../core/ports/store.ts'
import { PARTNER } from '../../support/partner.ts'
import { check, type Client, READ, type Reply } from './setup.ts'

export type Load = ReturnType<typeof startLoad>

/** Sends requests from `concurrency` clients, each with a pause after its last response. */
export function startLoad(send: () => Promise<Reply>, concurrency: number, pauseMs: number) {
  const replies: Reply[] = []
  let isOver = false
  const all = Promise.all(Array.from({ length: concurrency }, async () => {
    while (!isOver) {
      replies.push(await send())
      await sleep(pauseMs)
    }
  }))
  return {
    /** The responses so far. */
    replies: replies as readonly Reply[],
    /** Stops sending. @returns All responses, once the last has arrived. */
    async stop() {
      isOver = true
      await all
      return replies as readonly Reply[]
    },
  }
}

/** A signup that got 201. */
export interface Acknowledged extends Pick<Reply, 'askedAt' | 'answeredAt'> {
  readonly number: number
  readonly id: string
}

/** Sends the nth signup, with an idempotency key of its own. */
export function signUp(client: Client, key: string, number: number): Promise<Reply> {
  const body = { partner: PARTNER, email: `someone${number}@mail.example`, name: `Someone ${number}` }
  return client.send('/partner/signups', { key, body, idempotencyKey: `trial-${number}` })
}

export type Signing = ReturnType<typeof startSigning>

/**
 * Signs up from `atOnce` clients. Each signup goes to one replica, and after a failure to another with the same idempotency
 * key.
 *
 * @param first The number of the first signup.
 */
export function startSigning(clients: readonly Client[], key: string, atOnce: number, first = 0) {
  const acknowledged: Acknowledged[] = []
  let retries = 0
  let next = first
  let isOver = false
  const all = Promise.all(Array.from({ length: atOnce }, async () => {
    while (!isOver) {
      const number = next++
      for (let attempt = number;; attempt++) {
        const { status, body, ...times } = await signUp(clients[attempt % clients.length]!, key, number)
        if (status === 201) {
          acknowledged.push({ number, id: JSON.parse(body).data.id, ...times })
          break
        }
        retries++
        await sleep(50)
      }
    }
  }))
  return {
    acknowledged: acknowledged as readonly Acknowledged[],
    /** The number of attempts that were repeated because they were not acknowledged. */
    retries: () => retries,
    /** Starts no more signups, and resolves when all pending ones are acknowledged. */
    async stop() {
      isOver = true
      await all
    },
  }
}

/** Checks that a store has the acknowledged signups, each once, and no others. */
export async function checkSignups(
  store: Store,
  acknowledged: readonly string[],
  retries: number,
): Promise<void> {
  const kept: Signup[] = []
  for (let page: readonly Signup[]; page = await store.listSignups(undefined, kept.at(-1), 1000), page[0];) {
    kept.push(...page)
  }
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

/** How a trial revokes keys. */
export interface RevokingOptions {
  /** Revokes a key; repeated until it does not throw. @returns Whether there was such a key. */
  readonly revoke?: (id: string) => Promise<boolean>
  readonly operators?: number
  /** Milliseconds between the requests of a client. */
  readonly pauseMs?: number
  /** Milliseconds that clients use a key after its revocation. */
  readonly afterwardsMs?: number
}

/** Operators who issue and revoke keys, one after another, and clients that continue to use them. */
export function startRevoking(clients: readonly Client[], store: Store, options: RevokingOptions = {}) {
  const keys = createKeyAdministration(store, { actor: 'test' })
  const { operators = 1, pauseMs = 20, afterwardsMs = 2500 } = options
  const revoke = options.revoke ?? ((id) => keys.revoke(id).then(() => true))
  const revoked: { readonly id: string; readonly tookMs: number }[] = []
  const accepted: { readonly id: string; readonly afterMs: number }[] = []
  const lost: string[] = []
  const using: Promise<unknown>[] = []
  let isOver = false

  async function retry<T>(command: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await command()
      } catch {
        await sleep(8 * pauseMs)
      }
    }
  }

  async function useKey(client: Client, id: string, key: string, revokedAt: () => number): Promise<void> {
    while (performance.now() < revokedAt() + afterwardsMs && !lost.includes(id)) {
      const { status, askedAt } = await client.send(READ, { key })
      if (status === 200 && askedAt > revokedAt()) accepted.push({ id, afterMs: askedAt - revokedAt() })
      await sleep(pauseMs)
    }
  }

  async function revokeOne(): Promise<void> {
    const { key: { id }, text } = await retry(() =>
      keys.issue({ partner: PARTNER, name: 'doomed', environment: 'live' })
    )
    let at = Infinity
    using.push(...clients.map((client) => useKey(client, id, text, () => at)))
    await sleep(8 * pauseMs)
    const startedAt = performance.now()
    if (!await retry(() => revoke(id))) return void lost.push(id)
    at = performance.now()
    revoked.push({ id, tookMs: at - startedAt })
  }

  const working = Array.from({ length: operators }, async () => {
    while (!isOver) {
      await revokeOne()
      await sleep(pauseMs)
    }
  })
  return {
    /** Keys whose revocation was acknowledged. */
    revoked: revoked as readonly { readonly id: string; readonly tookMs: number }[],
    /** Requests that were accepted although they were sent after the revocation. */
    accepted: accepted as readonly { readonly id: string; readonly afterMs: number }[],
    /** Keys that were issued, and are unknown. */
    lost: lost as readonly string[],
    async stop() {
      isOver = true
      await Promise.all(working)
      await Promise.all(using)
    },
  }
}

/** Checks that keys whose revocation was acknowledged are revoked. */
export async function checkRevoked(store: Store, { revoked }: Pick<Revoking, 'revoked'>): Promise<void> {
  const found = await Promise.all(revoked.map(({ id }) => store.findKey(id)))
  const alive = found.filter((facts) => facts?.key.state !== 'revoked').length
  check(`revoked keys stay revoked (${alive} are not)`, alive === 0)
}

export type Revoking = ReturnType<typeof startRevoking>

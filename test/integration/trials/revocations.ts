/** Revoking a key at once everywhere, as it is tried and measured. */
import type { Store } from '../../../core/ports/store.ts'
import { awaitReceipt } from '../../../core/replicas/receipt.ts'
import { until } from '../../postgres/until.ts'
import { runProgram } from '../../support/cli-program.ts'
import { type Load, startLoad } from './client.ts'
import type { ReplicaProcess } from './replicas.ts'
import { READ, type Tenant } from './tenant.ts'

/** What became of one key. Milliseconds count from when the change was known to be made. */
export interface Revocation {
  readonly receiptMs: number
  /** When the last request that was accepted had been asked. */
  readonly lastAcceptedMs: number
  readonly asked: number
  /** Requests that were accepted although they were asked after the receipt. */
  readonly acceptedAfterwards: number
  /** Requests that were answered neither with 200 nor with 401. */
  readonly unanswered: number
}

/** A change, and that it binds everywhere. */
export interface Revoked {
  /** An instant at which the change was made already. */
  readonly changedAt: number
  readonly receivedAt: number
  readonly replicas: readonly { readonly applied: boolean }[]
}

/** Revokes a key by its id and waits until that binds everywhere. */
export type Revoke = (id: string) => Promise<Revoked>

/** For how long after its receipt a key is asked with: far longer than an answer takes. */
const afterwardsMs = 150

/** By the library. */
export function revokeHere(store: Store, { keys }: Tenant): Revoke {
  return async (id) => {
    await keys.revoke(id)
    const changedAt = performance.now()
    const receipt = await awaitReceipt(store)
    return { changedAt, receivedAt: performance.now(), replicas: receipt?.replicas ?? [] }
  }
}

/** By the program, as an operator does it. The receipt is there when the command has ended. */
export function revokeByCommand(storeUrl: string): Revoke {
  return async (id) => {
    const ended = await runProgram(['keys', 'revoke', id, '--wait', '--json'], {
      env: { PARTNER_API_STORE: storeUrl },
    })
    const receivedAt = performance.now()
    if (ended.code !== 0) throw new Error(`keys revoke ended with ${ended.code}: ${ended.stderr}`)
    const { receipt } = JSON.parse(ended.stdout)
    return { changedAt: receivedAt - receipt.ms, receivedAt, replicas: receipt.replicas }
  }
}

/** Revokes a new key while all replicas are asked with it without a pause. */
export async function watchRevocation(
  replicas: readonly ReplicaProcess[],
  { issue }: Tenant,
  revoke: Revoke,
): Promise<Revocation> {
  const { key: { id }, text: key } = await issue()
  const loads = replicas.map(({ client }) => startLoad(() => client.ask(READ, { key }), 2, 2))
  await until(() => loads.every(isWarm), 'all replicas to know the key')
  const { changedAt, receivedAt, replicas: receipts } = await revoke(id)
  await new Promise((resolve) => setTimeout(resolve, afterwardsMs))
  const replies = (await Promise.all(loads.map((load) => load.stop()))).flat()
  if (receipts.length !== replicas.length || receipts.some(({ applied }) => !applied)) {
    throw new Error(`A receipt was not of all replicas: ${JSON.stringify(receipts)}`)
  }
  const accepted = replies.filter(({ status }) => status === 200)
  return {
    receiptMs: receivedAt - changedAt,
    lastAcceptedMs: Math.max(...accepted.map(({ askedAt }) => askedAt)) - changedAt,
    asked: replies.length,
    acceptedAfterwards: accepted.filter(({ askedAt }) => askedAt > receivedAt).length,
    unanswered: replies.filter(({ status }) => status !== 200 && status !== 401).length,
  }
}

function isWarm({ replies }: Load): boolean {
  return replies.filter(({ status }) => status === 200).length >= 5
}

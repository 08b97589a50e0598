/** Revokes keys on all replicas, for trials and benchmarks. */
import type { Store } from '../../../core/ports/store.ts'
import { awaitReceipt } from '../../../core/replicas.ts'
import { until } from '../../postgres/until.ts'
import { runProgram } from '../../support/cli-program.ts'
import { type Load, startLoad } from './client.ts'
import type { ReplicaProcess } from './replicas.ts'
import { READ, type Tenant } from './tenant.ts'

/** The outcome for one key. Milliseconds count from when the change was known to be committed. */
export interface Revocation {
  readonly receiptMs: number
  /** When the last accepted request was sent. */
  readonly lastAcceptedMs: number
  readonly asked: number
  /** The number of accepted requests that were sent after the receipt. */
  readonly acceptedAfterwards: number
  /** The number of responses other than 200 and 401. */
  readonly unanswered: number
}

/** A revocation that every replica has applied. */
export interface Revoked {
  /** An instant after the commit. */
  readonly changedAt: number
  readonly receivedAt: number
  readonly replicas: readonly { readonly applied: boolean }[]
}

/** Revokes a key by id and waits until every replica has applied it. */
export type Revoke = (id: string) => Promise<Revoked>

/** How long a key is used after its receipt: much longer than a response takes. */
const afterwardsMs = 150

/** Revokes through the library. */
export function revokeHere(store: Store, { keys }: Tenant): Revoke {
  return async (id) => {
    await keys.revoke(id)
    const changedAt = performance.now()
    const receipt = await awaitReceipt(store)
    return { changedAt, receivedAt: performance.now(), replicas: receipt?.replicas ?? [] }
  }
}

/** Revokes through the program, as an operator does. */
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

/** Revokes a new key while it is used continuously on all replicas. */
export async function watchRevocation(
  replicas: readonly ReplicaProcess[],
  { issue }: Tenant,
  revoke: Revoke,
): Promise<Revocation> {
  const { key: { id }, text: key } = await issue()
  const loads = replicas.map(({ client }) => startLoad(() => client.send(READ, { key }), 2, 2))
  await until(() => loads.every(isWarm), 'all replicas to know the key')
  const { changedAt, receivedAt, replicas: receipts } = await revoke(id)
  await new Promise((resolve) => setTimeout(resolve, afterwardsMs))
  const replies = (await Promise.all(loads.map((load) => load.stop()))).flat()
  if (receipts.length !== replicas.length || receipts.some(({ applied }) => !applied)) {
    throw new Error(`A receipt did not include all replicas: ${JSON.stringify(receipts)}`)
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

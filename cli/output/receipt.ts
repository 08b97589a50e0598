import type { Receipt, ReplicaReceipt } from '../../core/replicas/receipt.ts'
import { printable } from './text.ts'

/** Receipt, as `--json` shows it. */
export function receiptWire({ ms, replicas }: Receipt): Record<string, unknown> {
  return { ms, replicas: replicas.map(({ name, applied, ms }) => ({ name, applied, ms })) }
}

/** A receipt for people: a sentence for each replica, and one for all. */
export function receiptLines({ ms, replicas }: Receipt): string[] {
  // A server that was asked for nothing yet is not listed.
  const each = replicas.length === 0
    ? ['No server on this store uses anything older.']
    : replicas.map(replicaLine)
  return [...each, `Binds everywhere after ${ms} ms.`]
}

function replicaLine({ name, applied, ms }: ReplicaReceipt): string {
  return applied
    ? `${printable(name)} applied it after ${ms} ms`
    : `${printable(name)} has not answered; its lease ended after ${ms} ms`
}

import type { Receipt, ReplicaReceipt } from '../../core/replicas/receipt.ts'
import { printable } from './text.ts'

/** Receipt, as `--json` shows it. */
export function receiptWire({ ms, replicas }: Receipt): Record<string, unknown> {
  const each = replicas.map(({ name, applied, ms, skewMs }) => ({
    name,
    applied,
    ms,
    ...(skewMs !== 0 && { clock_skew_ms: skewMs }),
  }))
  return { ms, replicas: each }
}

/** A receipt for people: a sentence for each replica, and one for all. */
export function receiptLines({ ms, replicas }: Receipt): string[] {
  // A server that was asked for nothing yet is not listed.
  const each = replicas.length === 0
    ? ['No server on this store uses anything older.']
    : [...replicas.map(replicaLine), ...replicas.filter(({ skewMs }) => skewMs !== 0).map(skewLine)]
  return [...each, `Binds everywhere after ${ms} ms.`]
}

function skewLine({ name, skewMs }: ReplicaReceipt): string {
  return `warning: The clock of ${printable(name)} is ${Math.abs(skewMs)} ms ${
    skewMs > 0 ? 'ahead of' : 'behind'
  } that of the store, by which keys are judged.`
}

function replicaLine({ name, applied, ms }: ReplicaReceipt): string {
  return applied
    ? `${printable(name)} applied it after ${ms} ms`
    : `${printable(name)} has not answered; its lease ended after ${ms} ms`
}

/** Checks of webhooks: those that get nothing. */
import type { Store } from '../../core/ports/store.ts'
import { findMany, type Judge } from './check.ts'

const manyPending = 1_000

/** @param hasKey Whether the settings of `serve` have a key for secrets. */
export async function checkWebhooks(judge: Judge, { webhooks: port }: Store, hasKey: boolean): Promise<void> {
  const all = await port?.listWebhooks() ?? []
  const active = all.filter(({ state }) => state === 'active')
  const counts = await Promise.all(active.map(({ id }) => port!.countPending(id)))
  const idsOf = (webhooks: typeof all) => webhooks.map(({ id }) => id)
  const disabled = idsOf(all.filter(({ state }) => state === 'disabled'))
  const failing = idsOf(active.filter(({ failingSince }) => failingSince !== undefined))
  const late = idsOf(active.filter((_, index) => counts[index]! >= manyPending))
  judge(
    'webhooks',
    findMany('Webhooks that are disabled', disabled, `partner-api webhooks enable ${disabled[0]}`),
    findMany('Webhooks that fail', failing, `partner-api webhooks deliveries ${failing[0]}`),
    findMany(`Webhooks with ${manyPending} pending deliveries`, late, `partner-api webhooks test ${late[0]}`),
    active.length > 0 && !hasKey && {
      message: 'There are webhooks, and the settings of serve have no key for their secrets.',
      command: 'partner-api config show serve',
    },
  )
}

import { openSecrets, type WebhookKey } from '../../adapters/webhooks/secrets.ts'
import type { Store } from '../../core/ports/store.ts'
import { type Check, findMany } from './check.ts'

const manyPending = 1_000

/** @param key That of the settings of `serve`, for secrets. */
export async function checkWebhooks(
  check: Check,
  { webhooks: port }: Store,
  key?: WebhookKey,
): Promise<void> {
  const all = await port?.listWebhooks() ?? []
  const active = all.filter(({ state }) => state === 'active')
  const counts = await Promise.all(active.map(({ id }) => port!.countPending(id)))
  const idsOf = (webhooks: typeof all) => webhooks.map(({ id }) => id)
  const disabled = idsOf(all.filter(({ state }) => state === 'disabled'))
  const failing = idsOf(active.filter(({ failingSince }) => failingSince !== undefined))
  const late = idsOf(active.filter((_, index) => counts[index]! >= manyPending))
  const opened = await Promise.all(
    active.map((each) => key && openSecrets(key, each, Date.now()).catch(() => null)),
  )
  const sealed = idsOf(active.filter((_, index) => opened[index] === null))
  check(
    'webhooks',
    findMany('Webhooks with another key', sealed, `partner-api webhooks rotate-secret ${sealed[0]}`),
    findMany('Webhooks that are disabled', disabled, `partner-api webhooks enable ${disabled[0]}`),
    findMany('Webhooks that fail', failing, `partner-api webhooks deliveries ${failing[0]}`),
    findMany(`Webhooks with ${manyPending} pending deliveries`, late, `partner-api webhooks test ${late[0]}`),
    active.length > 0 && key === undefined && {
      message: 'There are webhooks, and the settings of serve have no valid key for their secrets.',
      command: 'partner-api config show serve',
    },
  )
}

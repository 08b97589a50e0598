/** Checks of the store, of its files and of webhooks. */
import { existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { WebhookKey } from '../../adapters/webhooks/secrets.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Invocation } from '../command.ts'
import { verifyAudit } from '../commands/audit.ts'
import { toCliError } from '../errors.ts'
import { shellQuote } from '../output/text.ts'
import { exposedFiles, schemaStatus, withStore } from '../store/open.ts'
import { parseDurableUrl } from '../store/url.ts'
import { type Check, checkIndexes, findMany, issue } from './check.ts'

export async function checkStore(
  check: Check,
  invocation: Invocation,
  webhookKey: WebhookKey | undefined,
  report: (progress: string) => void,
): Promise<void> {
  const { storeUrl, io: { env } } = invocation
  const address = parseDurableUrl(storeUrl, '')
  const { current, latest } = await schemaStatus(address, env)
  const message = `The store has schema version ${current}, and this program needs ${latest}.`
  const command = current < latest ? 'partner-api migrate' : 'npm install --global partner-api'
  check('schema', current !== latest && { message, command })
  if (address.kind === 'sqlite') {
    checkAccess(check, 'store-files', [address.file])
    checkDisk(check, address.file)
    if (current === latest) await checkSqlite(check, address.file)
  }
  if (current < latest) return
  await withStore(invocation, { readOnly: true }, async (store) => {
    if (address.kind === 'postgres') {
      const { checkPostgres } = await import('./postgres.ts')
      await checkPostgres(check, storeUrl, store, env)
    }
    await checkWebhooks(check, store, webhookKey)
    report('Verifying the audit log …')
    const broken = await verifyAudit(store).then(() => undefined, toCliError)
    if (broken?.exitCode === 3) throw broken
    const command = 'partner-api audit verify'
    check('audit-log', broken && { message: broken.message.replace(/:$/, '.'), command })
  })
}

export function checkAccess(check: Check, name: 'key-files' | 'store-files', files: readonly string[]): void {
  const quote = (names: readonly string[]) => names.map(shellQuote).join(' ')
  const missing = files.filter((file) => !existsSync(file))
  const names = files.flatMap(exposedFiles)
  check(
    name,
    findMany('Files that are missing', missing, `ls -l ${quote(missing)}`),
    findMany('Files that other accounts can read', names, `chmod 600 ${quote(names)}`),
  )
}

function checkDisk(check: Check, file: string): void {
  const folder = dirname(file)
  const { bavail, blocks, bsize } = statfsSync(folder)
  const mebibyte = 1_048_576
  const free = Math.floor(bavail * bsize / mebibyte)
  // On a small disk, a tenth is enough.
  const isLow = free < 1_024 && bavail < blocks / 10
  const spaceLeft = `The disk of the store has ${free} MiB left.`
  check('disk-space', isLow && issue(spaceLeft, `df -h ${shellQuote(folder)}`))
  const size = Math.ceil((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) / mebibyte)
  const message = `The write-ahead log has ${size} MiB: a process holds an old snapshot open, or was killed.`
  check('wal-size', size > 64 && { message, command: `fuser -v ${shellQuote(file)}` })
}

async function checkSqlite(check: Check, file: string): Promise<void> {
  const { withReader } = await import('../../adapters/stores/sqlite/database.ts')
  const { MIGRATIONS } = await import('../../adapters/stores/sqlite/migrate.ts')
  const select = "SELECT name FROM sqlite_schema WHERE type = 'index'"
  const rows = withReader(file, (database) => database.statement<[string]>(select).all())
  checkIndexes(check, MIGRATIONS, rows.flat())
}

const manyPending = 1_000

async function checkWebhooks(check: Check, { webhooks: port }: Store, key?: WebhookKey): Promise<void> {
  const all = await port?.listWebhooks() ?? []
  const active = all.filter(({ state }) => state === 'active')
  const counts = await Promise.all(active.map(({ id }) => port!.countPending(id)))
  const idsOf = (webhooks: typeof all) => webhooks.map(({ id }) => id)
  const disabled = idsOf(all.filter(({ state }) => state === 'disabled'))
  const failing = idsOf(active.filter(({ failingSince }) => failingSince !== undefined))
  const late = idsOf(active.filter((_, index) => counts[index]! >= manyPending))
  const { openSecrets } = await import('../../adapters/webhooks/secrets.ts')
  const opened = await Promise.all(
    active.map((each) => key && openSecrets(key, each, Date.now()).catch(() => null)),
  )
  const noKey = 'There are webhooks, and no valid key for their secrets is set here.'
  const sealed = idsOf(active.filter((_, index) => opened[index] === null))
  check(
    'webhooks',
    findMany('Webhooks with another key', sealed, `partner-api webhooks rotate-secret ${sealed[0]}`),
    findMany('Webhooks that are disabled', disabled, `partner-api webhooks enable ${disabled[0]}`),
    findMany('Webhooks that fail', failing, `partner-api webhooks deliveries ${failing[0]}`),
    findMany(`Webhooks with ${manyPending} pending deliveries`, late, `partner-api webhooks test ${late[0]}`),
    active.length > 0 && key === undefined &&
      issue(noKey, 'partner-api doctor --webhook-key-file webhook.key'),
  )
}

import { readFileSync } from 'node:fs'
import { Option } from 'commander'
import { importWebhookKey, type WebhookKey } from '../../adapters/webhooks/secrets.ts'
import { readVariable } from '../environment.ts'
import { CliError, usageError } from '../errors.ts'
import { requireOwnFile, unreadableFileError } from '../files.ts'
import { exposedFiles, type StoreAccess } from '../store/open.ts'

/** The option of `serve` and of the commands that open secrets. */
export function webhookKeyOption(): Option {
  return new Option(
    '--webhook-key-file <file>',
    'Key that encrypts secrets of webhooks (or PARTNER_API_WEBHOOK_KEY)',
  )
}

/** @throws {CliError} exit code 2 for an invalid key. */
export async function readWebhookKey(
  file: string | undefined,
  { io: { env }, output }: StoreAccess,
): Promise<WebhookKey | undefined> {
  const name = file ?? 'PARTNER_API_WEBHOOK_KEY'
  try {
    const text = file === undefined
      ? readVariable(env, 'PARTNER_API_WEBHOOK_KEY')
      : readFileSync(file, 'utf8')
    if (text === undefined) return undefined
    if (file !== undefined) requireOwnFile(file)
    const [exposed] = file === undefined ? [] : exposedFiles(file)
    if (exposed) output.note(`warning: Other accounts can read ${exposed}: chmod 600 ${exposed}`)
    return await importWebhookKey(text)
  } catch (error) {
    if (error instanceof CliError) throw error
    if (!(error instanceof RangeError)) throw unreadableFileError(name, error)
    throw usageError(`The webhook key ${name} cannot be used. ${error.message}`)
  }
}

/** @throws {CliError} `webhook_key_missing` */
export async function requireWebhookKey(file: string | undefined, access: StoreAccess): Promise<WebhookKey> {
  const key = await readWebhookKey(file, access)
  if (key !== undefined) return key
  throw new CliError(
    1,
    'webhook_key_missing',
    'Secrets of webhooks are stored encrypted, and no key is set. To make one: (umask 077; openssl rand ' +
      '-base64 32 > webhook.key). Pass it here and to serve, in --webhook-key-file webhook.key.',
  )
}

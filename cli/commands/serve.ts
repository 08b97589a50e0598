import process from 'node:process'
import { type Command, Option } from 'commander'
import { validateName } from '../../core/admin/validate.ts'
import { MAX_STALE_IF_ERROR_SECONDS } from '../../core/cache/revision-cache.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import { DEFAULT_KEEP_USAGE_DAYS, MAX_KEEP_USAGE_DAYS } from '../../core/settings.ts'
import { action, type Invocation } from '../command.ts'
import {
  addServiceOptions,
  durationOption,
  integerBetween,
  optionParser,
  type ServiceOptions,
  serviceSettings,
} from '../options.ts'
import { printResult } from '../output/print.ts'
import { joinList, listeningLine } from '../output/text.ts'
import { describeStore, exposedFiles, isMissingStore, withStore } from '../store.ts'
import { parseStoreUrl } from '../store-url.ts'

interface ServeOptions extends ServiceOptions {
  readonly port: number
  readonly host: string
  readonly staleIfError: number
  readonly limitsPerProcess?: true
  readonly replicaName?: string
  readonly trustProxies: number
  readonly keepUsage: number
  readonly log: 'off' | 'errors' | 'all'
}

/** `serve`. */
export function define(serve: Command): void {
  for (const name of ['PORT', 'HOST']) if (process.env[name] === '') delete process.env[name]
  addServiceOptions(
    serve
      .addOption(
        new Option('--port <port>', 'Port to listen on; 0 takes a free one')
          .argParser(integerBetween(0, 65_535)).default(8787).env('PORT'),
      )
      .addOption(
        new Option('--host <host>', 'Address to listen on').default('127.0.0.1').env('HOST'),
      ),
  )
    .option(
      '--stale-if-error <seconds>',
      'How long known keys work while the store is unavailable, 0 to 3600',
      integerBetween(0, MAX_STALE_IF_ERROR_SECONDS),
      0,
    )
    .option('--limits-per-process', 'Do not share limits with other servers')
    .option(
      '--replica-name <name>',
      'Name of this server in the output of --wait (default: HOSTNAME:PID)',
      replicaNameOption,
    )
    .option(
      '--trust-proxies <n>',
      'Number of proxies in front that add to X-Forwarded-For',
      integerBetween(0, 100),
      0,
    )
    .addOption(
      new Option('--keep-usage <days>', 'How long reports include requests and signups')
        .argParser(daysOption).default(DEFAULT_KEEP_USAGE_DAYS, `${DEFAULT_KEEP_USAGE_DAYS}d`),
    )
    .addOption(
      new Option('--log <level>', 'JSON lines on standard error')
        .choices(['off', 'errors', 'all']).default('errors'),
    )
    .addHelpText(
      'after',
      `
Creates or migrates the store first. Prints one line on standard output when it accepts connections. SIGTERM and
SIGINT let pending requests finish, for up to 10 s. Unless --log is off, the log starts with the location of the store
and whether it is new, and ends with the event "stopped".

Any number of servers can share one PostgreSQL store, all with the same options. They share limits, and commands with
--wait report when each server has applied a change. During --stale-if-error, a server that cannot reach the store
also accepts keys that have been revoked; verify-key and health report that state.

Examples:
  $ partner-api serve
  $ partner-api --store sqlite:/var/lib/partner-api.db serve --host 0.0.0.0 --port 80 --trust-proxies 1
  $ PARTNER_API_STORE=postgres://partner_api@db.example/partner_api partner-api serve --replica-name web-1
  $ partner-api serve --limit key=1200/60 --limit authfail=0 --log all`,
    )
    .action(action(serveStore))
}

async function serveStore(invocation: Invocation, options: ServeOptions): Promise<void> {
  const address = parseStoreUrl(invocation.storeUrl)
  const created = address.kind === 'memory' || await isMissingStore(address)
  await withStore(invocation, { create: true }, async (store) => {
    const exposed = address.kind === 'sqlite' ? exposedFiles(address.file) : []
    const warning = `Other accounts can read ${joinList(exposed)}. To prevent it: chmod 600 ${
      exposed.join(' ')
    }`
    const { serveUntilStopped } = await import('../server.ts')
    await serveUntilStopped(store, {
      port: options.port,
      host: options.host,
      log: options.log,
      opened: {
        store: await describeStore(address),
        created,
        ...(exposed.length > 0 && { level: 'warn', warning }),
      },
      api: {
        ...serviceSettings(options),
        staleIfErrorSeconds: options.staleIfError,
        sharedLimits: !options.limitsPerProcess,
        ...(options.replicaName !== undefined && { replicaName: options.replicaName }),
        trustedProxies: options.trustProxies,
        keepUsageDays: options.keepUsage,
      },
    }, (url) => printResult(invocation, { url }, listeningLine(url)))
  })
}

const daysOption = optionParser(`It must be whole days, 1d to ${MAX_KEEP_USAGE_DAYS}d.`, (text) => {
  const days = durationOption(text) / MS_PER_DAY
  return Number.isInteger(days) && days >= 1 && days <= MAX_KEEP_USAGE_DAYS ? days : undefined
})

const replicaNameOption = optionParser(
  'It must have 1 to 200 characters and no control characters or line breaks.',
  (text) => validateName(text) === undefined && text.length <= 200 ? text : undefined,
)

import process from 'node:process'
import { type Command, Option } from 'commander'
import { validateName } from '../../core/admin/validate.ts'
import { MAX_STALE_IF_ERROR_SECONDS } from '../../core/cache/revision-cache.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import { DEFAULT_KEEP_USAGE_DAYS, MAX_KEEP_USAGE_DAYS } from '../../core/settings.ts'
import { action } from '../command.ts'
import { type Invocation, parseStoreUrl } from '../invocation.ts'
import {
  addServiceOptions,
  deploymentInfo,
  durationOption,
  integerBetween,
  optionParser,
  type ServiceOptions,
} from '../options.ts'
import { printResult } from '../output/print.ts'
import { joinList, listeningLine } from '../output/text.ts'
import { describeStore, exposedFiles, isMissingStore, withStore } from '../store.ts'

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
      'How long known keys go on when the store does not answer, 0 to 3600',
      integerBetween(0, MAX_STALE_IF_ERROR_SECONDS),
      0,
    )
    .option('--limits-per-process', 'Count limits here alone, and do not share them with other servers')
    .option(
      '--replica-name <name>',
      'What --wait calls this server (default: HOSTNAME:PID)',
      replicaNameOption,
    )
    .option('--trust-proxies <n>', 'Proxies in front that add to X-Forwarded-For', integerBetween(0, 100), 0)
    .addOption(
      new Option('--keep-usage <days>', 'How long reports count what happened')
        .argParser(daysOption).default(DEFAULT_KEEP_USAGE_DAYS, `${DEFAULT_KEEP_USAGE_DAYS}d`),
    )
    .addOption(
      new Option('--log <level>', 'JSON lines on standard error')
        .choices(['off', 'errors', 'all']).default('errors'),
    )
    .addHelpText(
      'after',
      `
The store is made or migrated first. Standard output gets one line, once connections are accepted. SIGTERM and
SIGINT let requests under way end, for 10 s at most. Unless --log is off, the log begins with the store that was opened,
and whether it is new, and ends with the line "stopped".

Any number of servers may run on one PostgreSQL store, all with the same settings. They share limits, and --wait of the
commands that change something says when each of them has applied it. What --stale-if-error allows, a key that was
revoked is allowed as well while its server cannot reach the store; verify-key and health tell when it is so.

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
    const { serveUntilStopped } = await import('../server.ts')
    await serveUntilStopped(store, {
      port: options.port,
      host: options.host,
      log: options.log,
      opened: {
        store: await describeStore(address),
        created,
        ...(exposed.length > 0 && {
          level: 'warn',
          warning: `Other accounts can read ${joinList(exposed)}. To prevent it: chmod 600 ${
            exposed.join(' ')
          }`,
        }),
      },
      api: {
        serviceName: options.serviceName,
        limits: options.limit ?? {},
        maxStalenessMs: options.maxStaleness,
        staleIfErrorSeconds: options.staleIfError,
        sharedLimits: !options.limitsPerProcess,
        ...(options.replicaName !== undefined && { replicaName: options.replicaName }),
        trustedProxies: options.trustProxies,
        allowBrowsers: options.allowBrowsers ?? false,
        keepUsageDays: options.keepUsage,
        ...(options.problemBase !== undefined && { problemBase: options.problemBase }),
        deployment: deploymentInfo(options),
      },
    }, (url) => printResult(invocation, { url }, listeningLine(url)))
  })
}

const daysOption = optionParser(`It has to be whole days, 1d to ${MAX_KEEP_USAGE_DAYS}d.`, (text) => {
  const days = durationOption(text) / MS_PER_DAY
  return Number.isInteger(days) && days >= 1 && days <= MAX_KEEP_USAGE_DAYS ? days : undefined
})

const replicaNameOption = optionParser(
  'It has 1 to 200 characters, none of them a control character or line break.',
  (text) => validateName(text) === undefined && text.length <= 200 ? text : undefined,
)

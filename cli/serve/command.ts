import process from 'node:process'
import { Option } from 'commander'
import type { CliCommand, Invocation } from '../command.ts'
import { usageError } from '../errors.ts'
import { integerBetween, optionParser } from '../options.ts'
import { joinList, listeningLine } from '../output/text.ts'
import type { ServerSettings } from './server.ts'
import { addServerOptions, type ServiceOptions, toSettings } from './service-options.ts'
import { describeStore, exposedFiles, withStore } from '../store/open.ts'
import { parseStoreUrl, type StoreAddress } from '../store/url.ts'
import { readWebhookKey, webhookKeyOption } from '../webhooks/encryption-key.ts'

interface ServeOptions extends Omit<ServiceOptions, 'log'> {
  readonly port: number
  readonly host: string
  readonly log: 'off' | 'errors' | 'all'
  readonly reusePort?: true
  readonly limitsPerProcess?: true
  readonly metrics?: { readonly host: string; readonly port: number }
  readonly metricsBy?: 'partner'
  readonly drainDelay: number
  readonly webhookKeyFile?: string
  readonly allowPrivateWebhooks?: true
}

export function define(serve: CliCommand): void {
  addServerOptions(
    serve
      .addOption(
        new Option('--port <port>', 'Port to listen on; 0 takes a free one')
          .argParser(integerBetween(0, 65_535)).default(8787),
      )
      .addOption(new Option('--host <host>', 'Address to listen on').default('127.0.0.1')),
  )
    .addOption(
      new Option('--log <level>', 'JSON lines on standard error')
        .choices(['off', 'errors', 'all']).default('errors'),
    )
    .option('--reuse-port', 'Share the port, and limits on SQLite, with other processes (Linux)')
    .option('--metrics <[host:]port>', 'Serve /metrics, /ready and /live there', metricsOption)
    .addOption(new Option('--metrics-by <label>', 'Count requests by partner, too').choices(['partner']))
    .addOption(
      new Option('--drain-delay <seconds>', 'Time between /ready turning 503 and the drain, 0 to 3600')
        .argParser(integerBetween(0, 3_600)).default(0),
    )
    .addOption(webhookKeyOption())
    .option('--allow-private-webhooks', 'Deliver to private addresses and by http://, too')
    .act(serveStore)
    .details(`
Creates or migrates the store first. Prints one line on standard output when it accepts connections. SIGTERM, SIGINT
and SIGHUP let pending requests finish, for up to 7 s. Unless --log is off, the log starts with the location of the
store and whether it is new, and ends with the event "stopped".

With --reuse-port, several processes of one account serve the port, and Linux spreads connections over them. Give all the
same store and options. Each has its own --metrics and log, and starts and stops on its own.

Any number of servers can share one PostgreSQL store, all with the same options. They share limits, and commands with
--wait report when each server has applied a change. During --stale-if-error, a server that cannot reach the store
also accepts keys that have been revoked; verify-key and health report that state.`)
    .examples(
      'partner-api serve',
      'partner-api --store sqlite:/var/lib/partner-api.db serve --host 0.0.0.0 --port 80 --trust-proxies 1',
      'PARTNER_API_STORE=postgres://partner_api@db.example/partner_api partner-api serve --replica-name web-1',
      'partner-api serve --limit key=1200/60 --limit authfail=0 --log all',
      'partner-api serve --metrics 9464 --drain-delay 5',
      'partner-api serve --reuse-port --metrics 9464',
    )
}

const metricsOption = optionParser(
  'It must be a port, or HOST:PORT such as 0.0.0.0:9464 or [::1]:9464.',
  (text) => {
    const { host = '127.0.0.1', port = '' } =
      /^(?:(?<host>\[[^\]]+\]|[^:]+):)?(?<port>\d{1,5})$/.exec(text)?.groups ?? {}
    return port === '' || Number(port) > 65_535
      ? undefined
      : { host: host.replace(/[[\]]/g, ''), port: Number(port) }
  },
)

async function serveStore(invocation: Invocation, options: ServeOptions): Promise<void> {
  const address = parseStoreUrl(invocation.storeUrl)
  if (options.reusePort) checkReusePort(options, address)
  const settings = await readSettings(invocation, options, address)
  // By default, processes share limits on PostgreSQL, and on SQLite those with long windows.
  const shareLimits = options.limitsPerProcess ? false : options.reusePort
  // Programs read standard error as JSON lines, where `created` says it.
  const announce = invocation.io.stderr.isTTY === true
  await withStore(invocation, { create: true, announce, shareLimits }, async (store, created) => {
    const opened = { ...await describeOpened(invocation, address), created }
    const { serveUntilStopped } = await import('./server.ts')
    await serveUntilStopped(
      store,
      { ...settings, opened },
      // The server keeps running if nothing reads its output.
      (url, metricsUrl) =>
        invocation.output.print({ data: { url, metrics_url: metricsUrl }, text: listeningLine(url) })
          .catch(() => undefined),
    )
  })
}

function checkReusePort({ port }: ServeOptions, { kind }: StoreAddress): void {
  if (process.platform !== 'linux') {
    throw usageError(
      'Only Linux spreads connections over processes with --reuse-port: give each a port of its own.',
    )
  }
  if (port === 0) {
    throw usageError('With --port 0, each process would take another port: --reuse-port needs a port.')
  }
  if (kind === 'memory') {
    throw usageError(
      'With --reuse-port, each process would have a memory: store of its own: pass another --store.',
    )
  }
}

async function readSettings(
  invocation: Invocation,
  { port, host, log, metrics, metricsBy: by, drainDelay, reusePort, ...more }: ServeOptions,
  { kind }: StoreAddress,
): Promise<ServerSettings> {
  const { webhookKeyFile, allowPrivateWebhooks: allowPrivate, limitsPerProcess: _, ...options } = more
  if (by && !metrics) throw usageError('--metrics-by needs --metrics.')
  const { importTracing } = await import('./server.ts')
  return {
    port,
    host,
    log,
    drainDelay,
    reusePort: reusePort === true,
    endsWhenLost: kind === 'sqlite',
    webhooks: { key: await readWebhookKey(webhookKeyFile, invocation), allowPrivate },
    api: { ...toSettings(options), observers: await importTracing(kind) },
    ...(metrics && { metrics: { ...metrics, by } }),
  }
}

/** The location of the store and, if other accounts can read it, a warning. */
async function describeOpened(invocation: Invocation, address: StoreAddress) {
  const store = await describeStore(invocation)
  const exposed = address.kind === 'sqlite' ? exposedFiles(address.file) : []
  if (exposed.length === 0) return { store }
  const advice = `To prevent it: chmod 600 ${exposed.join(' ')}`
  return { store, level: 'warn', warning: `Other accounts can read ${joinList(exposed)}. ${advice}` } as const
}

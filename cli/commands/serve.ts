import { type Command, InvalidArgumentError, Option } from 'commander'
import { LIMIT_NAMES } from '../../core/limits/policies.ts'
import type { Limit, LimitName } from '../../core/model.ts'
import { integerBetween } from '../input/integer.ts'
import { limitsOf } from '../input/limits.ts'
import { serviceName } from '../input/service-name.ts'
import { type Invocation, invocationOf } from '../invocation.ts'
import { printResult } from '../output/print.ts'
import { withStore } from '../store.ts'

interface ServeOptions {
  readonly port: number
  readonly host: string
  readonly serviceName: string
  readonly limit?: Partial<Record<LimitName, Limit>>
  readonly maxStaleness: number
  readonly trustProxies: number
  readonly allowBrowsers?: boolean
  readonly problemBase?: string
  readonly log: 'off' | 'errors' | 'all'
}

/** `serve`. */
export function define(serve: Command): void {
  serve
    .option('--port <port>', 'Port to listen on; 0 takes a free one', integerBetween(0, 65_535), 8787)
    .option('--host <host>', 'Address to listen on', '127.0.0.1')
    .option('--service-name <name>', 'Its own name, in paths and headers', serviceName, 'service')
    .option(
      '--limit <policy=quota/seconds>',
      `${LIMIT_NAMES.join(', ')}; =0 turns one off (repeatable)`,
      limitsOf(LIMIT_NAMES),
    )
    .option(
      '--max-staleness <ms>',
      'How late a change made elsewhere may bind here, 0 to 10000',
      integerBetween(0, 10_000),
      1_000,
    )
    .option('--trust-proxies <n>', 'Proxies in front that add to X-Forwarded-For', integerBetween(0, 100), 0)
    .option('--allow-browsers', 'Answer requests that come from browsers, and log them')
    .option('--problem-base <url>', 'What the type of every problem starts with', problemBase)
    .addOption(
      new Option('--log <level>', 'JSON lines on standard error')
        .choices(['off', 'errors', 'all']).default('errors'),
    )
    .addHelpText(
      'after',
      `
The store is made or migrated first. Standard output gets one line, once connections are accepted. SIGTERM and
SIGINT let requests under way end, for 10 s at most.

Examples:
  $ partner-api serve
  $ partner-api --store sqlite:/var/lib/partner-api.db serve --host 0.0.0.0 --port 80 --trust-proxies 1
  $ partner-api serve --limit key=1200/60 --limit authfail=0 --log all`,
    )
    .action((options: ServeOptions, command: Command) => serveStore(invocationOf(command), options))
}

function serveStore(invocation: Invocation, options: ServeOptions): Promise<void> {
  return withStore(invocation, { create: true }, async (store) => {
    const { serveUntilStopped } = await import('../serving.ts')
    await serveUntilStopped(store, {
      port: options.port,
      host: options.host,
      log: options.log,
      api: {
        serviceName: options.serviceName,
        limits: options.limit ?? {},
        maxStalenessMs: options.maxStaleness,
        trustedProxies: options.trustProxies,
        allowBrowsers: options.allowBrowsers ?? false,
        ...(options.problemBase !== undefined && { problemBase: options.problemBase }),
      },
    }, (url) => printListening(invocation, url))
  })
}

/** The one line that says where the service listens. */
export function printListening(invocation: Invocation, url: string): Promise<void> {
  return printResult(invocation, { url }, `listening on ${url}\n`)
}

function problemBase(text: string): string {
  const url = URL.parse(text)
  if (
    (url?.protocol === 'https:' || url?.protocol === 'http:') && !url.search && !url.hash && !url.username
  ) {
    return text.replace(/\/+$/, '')
  }
  throw new InvalidArgumentError('It has to be an http:// or https:// address without query and fragment.')
}

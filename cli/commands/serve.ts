import { type Command, Option } from 'commander'
import { integerBetween } from '../input/integer.ts'
import { addServiceOptions, type ServiceOptions } from '../input/service-options.ts'
import { type Invocation, invocationOf } from '../invocation.ts'
import { printResult } from '../output/print.ts'
import { listeningLine } from '../output/text.ts'
import { withStore } from '../store.ts'

interface ServeOptions extends ServiceOptions {
  readonly port: number
  readonly host: string
  readonly trustProxies: number
  readonly log: 'off' | 'errors' | 'all'
}

/** `serve`. */
export function define(serve: Command): void {
  addServiceOptions(
    serve
      .option('--port <port>', 'Port to listen on; 0 takes a free one', integerBetween(0, 65_535), 8787)
      .option('--host <host>', 'Address to listen on', '127.0.0.1'),
  )
    .option('--trust-proxies <n>', 'Proxies in front that add to X-Forwarded-For', integerBetween(0, 100), 0)
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
    }, (url) => printResult(invocation, { url }, listeningLine(url)))
  })
}

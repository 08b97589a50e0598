import { fileURLToPath } from 'node:url'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { importContent } from '../../core/content/lines.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import type { ContentKind } from '../../core/ports/content.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { readLines } from '../files.ts'
import { integerBetween } from '../options.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import { lostKey, requireWritable } from '../output/secrets.ts'
import { joinList, listeningLine } from '../output/text.ts'
import { describeStore, timeOf, withStore } from '../store/open.ts'
import { parseStoreUrl } from '../store/url.ts'

interface DemoOptions {
  readonly port: number
  readonly host: string
  readonly serve: boolean
  readonly orServe?: true
}

const stopAdvice = 'Ctrl-C stops the server.\n'

/** Profiles refer to industries. */
const importOrder: readonly ContentKind[] = ['industries', 'plans', 'banners', 'profiles']

export function define(demo: CliCommand): void {
  demo
    .option('--port <port>', 'Port to listen on; 0 takes a free one', integerBetween(0, 65_535), 8787)
    .option('--host <host>', 'Address to listen on', '127.0.0.1')
    // The explicit default: Commander applies its own before this file is loaded.
    .option('--no-serve', 'Fill the store, but do not serve it', true)
    .option('--or-serve', 'Serve a store that already has partners, instead of refusing it')
    .act(runDemo)
    .details(
      'Creates the partner demo with all modules and prints its key once. Refuses a store that already has partners, ' +
        'unless --or-serve is given.',
    )
    .examples(
      'partner-api demo',
      'partner-api --store memory: demo --port 0',
      'partner-api --store sqlite:demo.db demo --no-serve',
    )
}

function runDemo(invocation: Invocation, { port, host, serve, orServe }: DemoOptions): Promise<void> {
  if (!serve && parseStoreUrl(invocation.storeUrl).kind === 'memory') {
    throw usageError(
      'A memory: store ends with this command: leave out --no-serve, or use sqlite:FILE or postgres://….',
    )
  }
  return withStore(invocation, { create: true }, async (store) => {
    const [partner] = await store.listPartners(undefined, 1)
    if (partner !== undefined && !orServe) {
      const detail = 'The store already has partners, and the demo needs an empty one: pass another --store.'
      const remedy = { purpose: 'To serve this one', command: 'serve', args: [] }
      throw new CliError(1, 'store_not_empty', detail, { remedy })
    }
    if (!serve) return partner === undefined ? await fillStore(invocation, store) : undefined
    const { serveUntilStopped } = await import('./server.ts')
    // Not before: if the port is in use, the store stays empty, and the command can be repeated.
    await serveUntilStopped(
      store,
      { port, host, log: 'errors', api: {} },
      (url) => partner ? describeExisting(invocation, partner.slug, url) : fillStore(invocation, store, url),
    )
  })
}

async function describeExisting(invocation: Invocation, slug: string, url: string): Promise<void> {
  const { io, output } = invocation
  const location = await describeStore(invocation)
  // `npm start` runs the demo in a checkout, where partner-api is not on the PATH.
  const program = io.env.npm_lifecycle_event === 'start' ? 'npm run -s partner-api --' : 'partner-api'
  const command = output.command(`keys issue ${slug} --name NAME`).replace('partner-api', program)
  output.note(`The store at ${location} already has partners, and is served as it is.`)
  output.note(`To get another key: ${command}`)
  output.note(`For the API reference, open ${connectable(url)}/service/docs\n${stopAdvice}`)
  await output.print({ data: { url }, text: listeningLine(url) })
}

async function fillStore({ operator, io, output }: Invocation, store: Store, url?: string): Promise<void> {
  if (output.json) requireWritable(io.stdout, 'The key is printed on it.')
  const now = timeOf(store)
  const partner = { slug: 'demo', name: 'Demo partner', modules: MODULE_NAMES }
  const { slug } = await createPartnerAdministration(store, operator).create(partner)
  const content: Record<string, number> = {}
  for (const kind of importOrder) {
    const file = fileURLToPath(new URL(`../../fixtures/content/${kind}.jsonl`, import.meta.url))
    const outcome = await importContent(store, kind, readLines(file, io.stdin), {
      now,
      actor: operator.actor,
    })
    if ('errors' in outcome) throw new Error(`${file} has invalid lines`)
    content[kind] = outcome.created
  }
  const request = { partner: slug, name: 'Demo key', environment: 'live' } as const
  const { key, text } = await createKeyAdministration(store, operator).issue(request)
  const base = connectable(url ?? 'http://127.0.0.1:8787')
  // Double quotes work in every shell.
  const curl =
    `curl -H "X-Service-Partner-Key: ${text}" "${base}/service/public/profiles?partner=${slug}&limit=3"`
  if (!output.json) {
    const filled = Object.entries(content).map(([kind, count]) => `${kind} (${count})`)
    output.note(`Filled the store with ${joinList(filled)}.`)
    output.note(`Partner ${slug} has all modules, and this key, which is shown only once:\n\n  ${text}\n`)
    const start = url === undefined ? `After ${output.command('serve')}, to` : 'To'
    output.note(`${start} get a page of profiles:\n\n  ${curl}\n`)
    output.note(`For the API reference, open ${base}/service/docs\n${url === undefined ? '' : stopAdvice}`)
  }
  const { id, ...rest } = keyJson(key, now)
  const data = { id, key: text, ...rest, url: url ?? null, content, curl }
  // People have the key on standard error.
  const lost = output.json ? lostKey(key.id) : undefined
  await output.print({ data, text: url === undefined ? '' : listeningLine(url), lost })
}

/** A URL with the loopback address in place of a wildcard address, to which some systems cannot connect. */
function connectable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

import { Option } from 'commander'
import { once } from 'node:events'
import process from 'node:process'
import { findPartner } from '../../core/admin/apply.ts'
import { parseDuration } from '../../core/admin/validate.ts'
import { delay } from '../../core/lib/promise.ts'
import { rfc3339, utcDay } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { KeyUsage } from '../../core/ports/reports.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { optionParser, slugHelp } from '../options.ts'
import { keyJson } from '../output/json.ts'
import { formatRelative, formatTable, pluralize } from '../output/text.ts'
import { timeOf, withStore } from '../store.ts'
import { parseDurableUrl } from '../store-url.ts'

interface Options {
  readonly interval: number
  readonly once?: true
}

/** `top`. */
export function define(top: CliCommand): void {
  top
    .argument('[partner]', slugHelp)
    .addOption(
      new Option('--interval <duration>', 'Time between readings, 1s to 1h').default(2_000, '2s').argParser(
        optionParser('It must be from 1s to 1h, such as 5s.', (text) => {
          const ms = parseDuration(text)
          return ms >= 1_000 && ms <= 3_600_000 ? ms : undefined
        }),
      ),
    )
    .option('--once', 'Print one reading, after one interval, and end')
    .act(async (invocation, partner: string | undefined, options: Options) => {
      parseDurableUrl(invocation.storeUrl, 'A memory: store has no other users to show: pass --store URL.')
      await withStore(invocation, {}, (store) => show(store, invocation, partner, options))
    })
    .details(`
Shows the keys that are used most: requests a second and errors since the reading before, requests today (UTC), and the
endpoint that is asked most. Servers write their counts every two seconds, so requests appear within 5 s. A terminal
shows as many keys as it has lines. Otherwise each reading is a block of up to ${maxKeys} keys; with --json, a line with
one document.`)
    .examples(
      'partner-api top',
      'partner-api top acme --interval 10s',
      "partner-api top --once --json | jq -r '.data[] | [.key_id, .requests_per_second] | @tsv'",
    )
}

/** The most keys of a reading; a terminal has fewer lines. */
const maxKeys = 100
/** Lines of a terminal above the first key. */
const headingLines = 3
const signals = ['SIGINT', 'SIGTERM'] as const
/** Another screen, without cursor and line wrap, and the way back. */
const [enter, leave] = ['\u001b[?1049h\u001b[?25l\u001b[?7l', '\u001b[?7h\u001b[?25h\u001b[?1049l']

/** What a key asked for since the reading before, and today. */
interface Activity {
  readonly keyId: string
  requests: number
  errors: number
  today: number
  /** Asked most since the reading before, or else today, and how often. */
  endpoint: string
  most: readonly [requests: number, today: number]
}

interface Reading {
  readonly at: number
  /** Since the reading before; `undefined` for the first one. */
  readonly seconds: number | undefined
  /** The key that asks most first. */
  readonly keys: readonly Activity[]
}

async function show(
  store: Store,
  { io: { env, stdout }, output }: Invocation,
  partner: string | undefined,
  { interval, once: isOnce }: Options,
): Promise<void> {
  const { TERM } = env
  const isScreen = stdout.isTTY === true && TERM !== 'dumb' && !output.json && !isOnce
  const interrupt = new AbortController()
  const interrupted = once(interrupt.signal, 'abort').then(() => undefined)
  const stop = () => interrupt.abort()
  for (const signal of signals) process.on(signal, stop)
  try {
    if (isScreen) await output.write(enter)
    const read = createReader(store, partner)
    while (!interrupt.signal.aborted) {
      const reading = await Promise.race([read(), interrupted])
      if (reading === undefined) return
      // The first reading alone does not say what is asked now.
      if (isScreen || reading.seconds !== undefined) {
        const lines = isScreen && stdout.rows ? Math.max(1, stdout.rows - headingLines) : maxKeys
        const keys = reading.keys.slice(0, lines)
        const rows = await Promise.all(keys.map((key) => describeKey(store, key, reading)))
        const text = describeReading(reading) + formatTable(headings, rows.map(({ cells }) => cells), output)
        if (isScreen) await output.write(toScreen(text))
        else if (!output.json) await output.write(`${text}\n`)
        else await output.document({ data: rows.map(({ json }) => json), read_at: rfc3339(reading.at) })
        if (isOnce) return
      }
      await delay(interval, interrupt.signal).catch(() => {})
    }
  } finally {
    for (const signal of signals) process.removeListener(signal, stop)
    if (isScreen) await output.write(leave)
  }
}

/** Returns a function that makes the next reading. */
function createReader(store: Store, partner: string | undefined): () => Promise<Reading> {
  let counted: ReadonlyMap<string, KeyUsage> | undefined
  let readAt = 0
  return async () => {
    const [at, now, before] = [timeOf(store), performance.now(), counted]
    const usage = await readUsage(store, partner, utcDay(at))
    const seconds = before && (now - readAt) / 1000
    const keys = new Map<string, Activity>()
    counted = new Map(usage.map((row) => [`${row.day} ${row.keyId} ${row.endpoint}`, row]))
    readAt = now
    for (const [place, row] of counted) {
      const { keyId, endpoint, requests: today } = row
      const known = before === undefined ? row : before.get(place)
      const requests = today - (known?.requests ?? 0)
      const key = keys.get(keyId) ?? { keyId, requests: 0, errors: 0, today: 0, endpoint, most: [0, 0] }
      key.requests += requests
      key.errors += row.errors - (known?.errors ?? 0)
      key.today += today
      if (requests > key.most[0] || (requests === key.most[0] && today > key.most[1])) {
        key.endpoint = endpoint
        key.most = [requests, today]
      }
      keys.set(keyId, key)
    }
    const byRate = (a: Activity, b: Activity) => b.requests - a.requests || b.today - a.today
    return { at, seconds, keys: [...keys.values()].sort(byRate) }
  }
}

async function readUsage(store: Store, partner: string | undefined, day: string) {
  if (partner === undefined) return await store.keyUsage(undefined, day, day)
  await findPartner(store, partner)
  const usage: KeyUsage[] = []
  let after: Key | undefined
  while (true) {
    const page = await store.listKeys({ partner }, after, 1_000)
    usage.push(...await store.keyUsage(page.map(({ id }) => id), day, day))
    if (page.length < 1_000) return usage
    after = page.at(-1)
  }
}

function describeReading({ at, seconds, keys }: Reading): string {
  const sum = (name: 'requests' | 'errors' | 'today') => keys.reduce((total, key) => total + key[name], 0)
  const today = `today ${pluralize(sum('today'), 'request')} of ${pluralize(keys.length, 'key')}`
  const rate = seconds && (sum('requests') / seconds).toFixed(1)
  const now = rate && `${rate} requests/s, ${pluralize(sum('errors'), 'error')}; `
  return `${rfc3339(at)}  ${now ?? ''}${today}\n\n`
}

const headings = 'req/s,errors,today,partner,key,name,hint,kind,endpoint,last used'.split(',')

async function describeKey(store: Store, activity: Activity, { at, seconds = 0 }: Reading) {
  const { keyId, requests, errors, today, endpoint } = activity
  const { key } = (await store.findKey(keyId))!
  // Counts are newer than the last use of a key, which servers write once a minute.
  const lastUsedAt = requests > 0 ? at : key.lastUsedAt
  const { partner, name, hint, environment, last_used_at } = keyJson({ ...key, lastUsedAt }, at)
  const perSecond = requests / seconds
  const recent = seconds === 0 ? ['–', '–'] : [perSecond.toFixed(1), `${errors}`]
  const about = [partner, keyId, name, key.hint && hint, environment].map(String)
  const counts = {
    requests_per_second: Number(perSecond.toFixed(2)),
    errors,
    requests_today: today,
    endpoint,
  }
  return {
    json: { partner, key_id: keyId, name, hint, environment, ...counts, last_used_at },
    cells: [...recent, today.toLocaleString('en'), ...about, endpoint, formatRelative(lastUsedAt, at)],
  }
}

/** Writes over what the screen shows. */
function toScreen(text: string): string {
  return `\u001b[H${text.trimEnd().replaceAll('\n', '\u001b[K\n')}\u001b[K\u001b[J`
}

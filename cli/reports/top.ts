import { Option } from 'commander'
import { findPartner } from '../../core/admin/apply.ts'
import { parseDuration, rfc3339, utcDay } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { KeyUsage } from '../../core/ports/reports.ts'
import { pagesOf, type Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { optionParser, slugHelp } from '../options.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import { formatCount, formatRelative, formatTable, pluralize } from '../output/text.ts'
import { repeat } from '../repeat.ts'
import { sumOf } from './counts.ts'
import { timeOf, withStore } from '../store/open.ts'
import { parseDurableUrl } from '../store/url.ts'

type Options = { readonly interval: number; readonly once?: true }

export function define(top: CliCommand): void {
  top
    .argument('[partner]', slugHelp)
    .addOption(
      new Option('--interval <duration>', 'Time between readings, 1s to 1h').default(2_000, '2s').argParser(
        optionParser('It must be from 1s to 1h, such as 5s.', (text) => {
          const ms = parseDuration(text)
          return ms !== undefined && ms >= 1_000 && ms <= 3_600_000 ? ms : undefined
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
endpoint with the most requests. Servers write their counts every two seconds, so requests appear within 5 s. A terminal
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
const headingLines = 3
/** Another screen, without cursor and line wrap, and the way back. */
const [enter, leave] = ['\u001b[?1049h\u001b[?25l\u001b[?7l', '\u001b[?7h\u001b[?25h\u001b[?1049l']

type Reading = Awaited<ReturnType<ReturnType<typeof createReader>>>

async function show(
  store: Store,
  { io: { env, stdout }, output }: Invocation,
  partner: string | undefined,
  { interval, once }: Options,
): Promise<void> {
  const isScreen = stdout.isTTY === true && env.TERM !== 'dumb' && !output.json && !once
  let isEntered = false
  output.isJsonLines = true
  try {
    for await (const reading of repeat(interval, createReader(store, partner))) {
      // The first reading has no rates.
      if (!isScreen && reading.seconds === undefined) continue
      const lines = isScreen && stdout.rows ? Math.max(1, stdout.rows - headingLines) : maxKeys
      const keys = reading.keys.slice(0, lines)
      const rows = await Promise.all(keys.map((key) => describeKey(store, key, reading)))
      const text = describeReading(reading) + formatTable(headings, rows.map(({ cells }) => cells), output)
      if (isScreen) {
        const start = isEntered ? '' : enter
        isEntered = true
        await output.write(start + toScreen(text))
      } else if (output.json) {
        await output.document({ data: rows.map(({ json }) => json), read_at: rfc3339(reading.at) })
      } else await output.write(`${text}\n`)
      if (once) return
    }
  } finally {
    if (isEntered) await output.write(leave)
  }
}

/** Returns a function that counts the requests of each key since the reading before, and today. */
function createReader(store: Store, partner: string | undefined) {
  let counted = new Map<string, KeyUsage>()
  let readAt: number | undefined
  return async () => {
    const at = timeOf(store)
    const now = performance.now()
    const usage = await readUsage(store, partner, utcDay(at))
    const placeOf = ({ day, keyId, endpoint }: KeyUsage) => `${day} ${keyId} ${endpoint}`
    const byKey = Map.groupBy(usage, ({ keyId }) => keyId)
    const keys = Array.from(byKey, ([keyId, counts]) => {
      const endpoints = counts.map((count) => {
        // The first reading has nothing to compare with.
        const before = readAt === undefined ? count : counted.get(placeOf(count))
        const requests = count.requests - (before?.requests ?? 0)
        const errors = count.errors - (before?.errors ?? 0)
        return { endpoint: count.endpoint, requests, errors, today: count.requests }
      }).sort(busiestFirst)
      const sum = (name: 'requests' | 'errors' | 'today') => sumOf(endpoints, name)
      const { endpoint } = endpoints[0]!
      return { keyId, endpoint, requests: sum('requests'), errors: sum('errors'), today: sum('today') }
    }).sort(busiestFirst)
    const seconds = readAt === undefined ? undefined : (now - readAt) / 1000
    counted = new Map(usage.map((count) => [placeOf(count), count]))
    readAt = now
    return { at, seconds, keys }
  }
}

type Activity = { readonly requests: number; readonly today: number }

function busiestFirst(a: Activity, b: Activity): number {
  return b.requests - a.requests || b.today - a.today
}

async function readUsage(store: Store, partner: string | undefined, day: string) {
  if (partner === undefined) return await store.keyUsage(undefined, day, day)
  await findPartner(store, partner)
  const usage: KeyUsage[] = []
  for await (const keys of pagesOf<Key>((after, limit) => store.listKeys({ partner }, after, limit))) {
    usage.push(...await store.keyUsage(keys.map(({ id }) => id), day, day))
  }
  return usage
}

function describeReading({ at, seconds, keys }: Reading): string {
  const today = `today ${pluralize(sumOf(keys, 'today'), 'request')} of ${pluralize(keys.length, 'key')}`
  const rate = seconds && (sumOf(keys, 'requests') / seconds).toFixed(1)
  const now = rate && `${rate} requests/s, ${pluralize(sumOf(keys, 'errors'), 'error')}; `
  return `${rfc3339(at)}  ${now ?? ''}${today}\n\n`
}

const headings = 'req/s,errors,today,partner,key,name,hint,kind,endpoint,last used'.split(',')

async function describeKey(
  store: Store,
  { keyId, requests, errors, today, endpoint }: Reading['keys'][number],
  { at, seconds = 0 }: Reading,
) {
  const { key } = (await store.findKey(keyId))!
  // Counts are newer than the last use of a key, which servers write once a minute.
  const lastUsedAt = requests > errors ? at : key.lastUsedAt
  const { partner, name, hint, environment, last_used_at } = keyJson({ ...key, lastUsedAt }, at)
  const perSecond = requests / seconds
  const recent = seconds === 0 ? ['–', '–'] : [perSecond.toFixed(1), `${errors}`]
  const about = [partner, keyId, name, key.hint && hint, environment].map(String)
  return {
    json: {
      ...{ partner, key_id: keyId, name, hint, environment },
      ...{ requests_per_second: Number(perSecond.toFixed(2)), errors, requests_today: today },
      ...{ endpoint, last_used_at },
    },
    cells: [...recent, formatCount(today), ...about, endpoint, formatRelative(lastUsedAt, at)],
  }
}

function toScreen(text: string): string {
  return `\u001b[H${text.trimEnd().replaceAll('\n', '\u001b[K\n')}\u001b[K\u001b[J`
}

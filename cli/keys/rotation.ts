import { Option } from 'commander'
import { findKey } from '../../core/admin/apply.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { requireRotated } from '../../core/admin/validate.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { MS_PER_DAY, optionalRfc3339, utcDay } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import type { KeyUsage } from '../../core/ports/reports.ts'
import type { Store } from '../../core/ports/store.ts'
import { daysIn } from '../../core/reports/period.ts'
import type { CliCommand, CommandResult, Invocation } from '../command.ts'
import { CliError } from '../errors.ts'
import { durationOption, keyHelp } from '../options.ts'
import { bars } from '../output/chart.ts'
import { keyJson } from '../output/json.ts'
import { formatTable, formatTime, pluralize } from '../output/text.ts'
import { timeOf } from '../store.ts'

/** Uses are recorded once a minute and key, seconds late, and after a failed write a minute later. */
const lastUseMarginMs = 120_000
const maxDays = 366
const maxShownDays = 14
const barWidth = 20

/** `keys rotation` and `keys rotation finish`. */
export function defineRotation(keys: CliCommand): void {
  const rotation = keys.command('rotation')
    .description('Show how far the requests have moved from a rotated key to its successor')
    .argument('<key>', 'Id of the old key or of its successor, see keys list')
    .read(show)
    .details('On the day of the rotation, the requests before it are counted as well. Days are UTC.')
    .examples('partner-api keys rotation Zt81mQv04KsD')
  rotation.command('finish')
    .description('End a rotated key that is no longer used, before its overlap ends')
    .argument('<key>', keyHelp)
    .addOption(
      new Option('--quiet-for <duration>', 'How long the old key must not have been used')
        .argParser(durationOption).default(MS_PER_DAY, '24h'),
    )
    .option('--force', 'End it even if it is still used')
    .change(finish)
    .details(
      'The last use is known to within two minutes, so the key must have been unused for two minutes longer.',
    )
    .examples(
      'partner-api keys rotation finish Zt81mQv04KsD',
      'partner-api keys rotation finish Zt81mQv04KsD --quiet-for 7d',
    )
}

/**
 * The rotation of a key, or of its predecessor if it was not rotated itself: all keys that replaced each other, the old
 * key, its successor, and those that have replaced that.
 */
async function findRotation(store: Store, invocation: Invocation, id: string) {
  const { key } = await findKey(store, id)
  const predecessors = new Map<string, Key>()
  for await (const each of createKeyAdministration(store, invocation).list({ partner: key.partner })) {
    if (each.successorId !== undefined) predecessors.set(each.successorId, each)
  }
  const chain = [key]
  for (let next; (next = predecessors.get(chain[0]!.id)) && !chain.includes(next);) chain.unshift(next)
  for (let next; (next = chain.at(-1)!.successorId) && chain.every(({ id }) => id !== next);) {
    chain.push((await findKey(store, next)).key)
  }
  const position = chain.indexOf(key) - (key.successorId === undefined ? 1 : 0)
  const old = chain[position] ?? key
  requireRotated(old)
  return { chain, old, successors: chain.slice(position + 1) }
}

async function show(store: Store, invocation: Invocation, id: string): Promise<CommandResult> {
  const { chain, old, successors } = await findRotation(store, invocation, id)
  const { output } = invocation
  const now = timeOf(store)
  const keys = [old, ...successors]
  const from = utcDay(Math.max(successors[0]!.createdAt, now - (maxDays - 1) * MS_PER_DAY))
  const usage = await store.keyUsage(keys.map(({ id }) => id), from, utcDay(now))
  const requestsOf = (key: Key, day?: string) =>
    sumOf(usage.filter((count) => count.keyId === key.id && (day === undefined || count.day === day)))
  const days = daysIn({ from, to: utcDay(now) }).map((day) => {
    const [old = 0, ...others] = keys.map((key) => requestsOf(key, day))
    const moved = others.reduce((sum, requests) => sum + requests, 0)
    return { day, old_key: old, successors: moved, moved: old + moved === 0 ? null : moved / (old + moved) }
  })
  const moved = days.findLast((day) => day.moved !== null)?.moved ?? null
  const next = nextStep(old, successors, now)
  const data = {
    ...{ key_id: id, chain: chain.map(({ id }) => id), ends_at: optionalRfc3339(endTime(old)), moved, next },
    keys: keys.map((key) => ({ ...keyJson(key, now), requests: requestsOf(key) })),
    days,
  }
  const keyTable = formatTable(
    ['key', 'state', 'created', 'ends', 'last used', 'requests'],
    keys.map((key) => [
      ...[key.id, keyState(key, now), formatTime(key.createdAt), formatTime(endTime(key))],
      ...[formatTime(key.lastUsedAt), requestsOf(key).toLocaleString('en')],
    ]),
    output,
  )
  const dayTable = formatTable(
    ['day', 'old key', 'successor', 'moved'],
    days.slice(-maxShownDays).map(({ day, old_key, successors, moved }) => [
      ...[day, old_key.toLocaleString('en'), successors.toLocaleString('en')],
      moved === null ? '–' : `${Math.floor(moved * 100)}% ${bars([moved, 1], barWidth)[0]}`,
    ]),
    output,
  )
  const role = id === old.id ? 'the old key' : 'the newest key'
  const text = `${id} is ${role} of ${chain.map(({ id }) => id).join(' → ')}\n\n${keyTable}\n${dayTable}`
  return { data, text, notes: () => [next] }
}

function nextStep(old: Key, successors: readonly Key[], now: number): string {
  const newest = successors.at(-1)!
  const state = keyState(newest, now)
  if (hasEnded(old, now)) return `The rotation is over: key ${old.id} is ${keyState(old, now)}.`
  if (state === 'disabled') return `Key ${newest.id} is disabled: partner-api keys enable ${newest.id}`
  if (hasEnded(newest, now)) {
    return `Key ${newest.id} is ${state}. To issue another: partner-api keys issue ${old.partner} --name NAME`
  }
  const end = `Key ${old.id} is ${keyState(old, now)} and ends ${formatTime(endTime(old))}`
  if (isUsed(old, MS_PER_DAY, now)) {
    const isUnused = newest.lastUsedAt === undefined
    return `${end}. ${
      isUnused ? 'Its successor is unused' : 'It is still used'
    }: ask the partner to use ${newest.id}.`
  }
  return `${end}, but has not been used for a day. To end it now: partner-api keys rotation finish ${old.id}`
}

async function finish(
  store: Store,
  invocation: Invocation,
  id: string,
  { quietFor, force }: { readonly quietFor: number; readonly force?: true },
): Promise<CommandResult> {
  const { old } = await findRotation(store, invocation, id)
  const now = timeOf(store)
  const isOver = hasEnded(old, now)
  if (!isOver && !force && isUsed(old, quietFor, now)) throw await inUseError(store, old, quietFor, now)
  const key = await createKeyAdministration(store, invocation).finishRotation(old.id)
  return {
    data: keyJson(key, timeOf(store)),
    text: `Key ${key.id} ${isOver ? 'had ended before' : 'was ended'}: ${formatTime(endTime(key))}\n`,
  }
}

async function inUseError(store: Store, old: Key, quietFor: number, now: number): Promise<CliError> {
  const from = utcDay(Math.min(old.lastUsedAt!, now - quietFor))
  const counts = Map.groupBy(await store.keyUsage([old.id], from, utcDay(now)), ({ endpoint }) => endpoint)
  const [most] = Array.from(counts, ([endpoint, each]) => ({ endpoint, requests: sumOf(each) }))
    .sort((a, b) => b.requests - a.requests)
  const where = most
    ? `, since ${from} mostly for ${most.endpoint} (${pluralize(most.requests, 'request')})`
    : ''
  const detail =
    `Key ${old.id} is still used: last at ${formatTime(old.lastUsedAt)} or up to two minutes later` +
    `${where}. To end it nevertheless: partner-api keys rotation finish ${old.id} --force`
  const members = { last_used_at: optionalRfc3339(old.lastUsedAt), endpoint: null, requests: 0, ...most }
  return new CliError(1, 'key_in_use', detail, { members })
}

function hasEnded(key: Key, now: number): boolean {
  return ['revoked', 'expired'].includes(keyState(key, now))
}

/** Whether a key may have been used within the last `ms` milliseconds. */
function isUsed({ lastUsedAt }: Key, ms: number, now: number): boolean {
  return lastUsedAt !== undefined && now - lastUsedAt < ms + lastUseMarginMs
}

/** By its expiry or its rotation. */
function endTime({ expiresAt, retiresAt }: Key): number | undefined {
  return expiresAt === undefined ? retiresAt : Math.min(expiresAt, retiresAt ?? Infinity)
}

function sumOf(counts: readonly KeyUsage[]): number {
  return counts.reduce((sum, { requests }) => sum + requests, 0)
}

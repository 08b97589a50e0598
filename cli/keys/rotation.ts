import { findKey } from '../../core/admin/apply.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { requireRotated } from '../../core/admin/validate.ts'
import { endOf, hasEnded, keyState } from '../../core/keys/lifecycle.ts'
import { MS_PER_DAY, optionalRfc3339, utcDay } from '../../core/lib/time.ts'
import type { Key } from '../../core/model.ts'
import { readKeys, type Store } from '../../core/ports/store.ts'
import { daysIn } from '../../core/reports/period.ts'
import type { CliCommand, StoreAction } from '../command.ts'
import { CliError } from '../errors.ts'
import { durationDefault } from '../options.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import type { Output } from '../output/print.ts'
import { formatCount, formatTable, formatTime, pluralize } from '../output/text.ts'
import { sumOf } from '../reports/counts.ts'
import { timeOf } from '../store/open.ts'

/** Uses are recorded once a minute and key, seconds late, and after a failed write a minute later. */
const lastUseMarginMs = 120_000
const maxDays = 366
const maxShownDays = 14
const barWidth = 20

interface FinishOptions {
  /** Milliseconds. */
  readonly quietFor: number
  readonly force?: true
}

export function defineRotation(keys: CliCommand): void {
  const rotation = keys
    .subcommand('rotation', 'Show how far the requests have moved from a rotated key to its successor')
    .argument('<key>', 'Id of the old key or of its successor, see keys list')
    .read(show)
    .details('On the day of the rotation, the requests before it are counted as well. Days are UTC.')
    .examples('partner-api keys rotation Zt81mQv04KsD')
  rotation
    .subcommand('finish <key>', 'End a rotated key that is no longer used, before its overlap ends')
    .addOption(durationDefault('--quiet-for', 'How long the old key must not have been used', MS_PER_DAY))
    .option('--force', 'End it even if it is still used')
    .change(finish)
    .dryRuns()
    .details(
      'Uses are recorded up to two minutes late, so the successor must have been used two minutes longer than --quiet-for ' +
        'after the last use of the old key.',
    )
    .examples(
      'partner-api keys rotation finish Zt81mQv04KsD',
      'partner-api keys rotation finish Zt81mQv04KsD --quiet-for 7d',
    )
}

/** A rotated key and those that have replaced it, oldest first. `id` is that of the rotated key or of the newest one. */
async function findRotation(store: Store, id: string): Promise<readonly [old: Key, ...successors: Key[]]> {
  let { key: old } = await findKey(store, id)
  if (old.successorId === undefined) {
    const filter = { partner: old.partner }
    for await (const key of readKeys(store, filter)) if (key.successorId === id) old = key
  }
  requireRotated(old)
  const keys: [Key, ...Key[]] = [old]
  for (let next; (next = keys.at(-1)!.successorId) && keys.every(({ id }) => id !== next);) {
    keys.push((await findKey(store, next)).key)
  }
  return keys
}

const show: StoreAction<[string]> = async (store, { output }, id) => {
  const keys = await findRotation(store, id)
  const [old, { createdAt: rotatedAt }] = keys as readonly [Key, Key]
  const now = timeOf(store)
  const from = utcDay(Math.max(rotatedAt, now - (maxDays - 1) * MS_PER_DAY))
  const to = utcDay(now)
  const usage = await store.keyUsage(keys.map(({ id }) => id), from, to)
  const byKey = Map.groupBy(usage, ({ keyId }) => keyId)
  const byDay = Map.groupBy(usage, ({ day }) => day)
  const requestsOf = ({ id }: Key) => sumOf(byKey.get(id) ?? [], 'requests')
  const days = daysIn({ from, to }).map((day) => {
    const counts = byDay.get(day) ?? []
    const all = sumOf(counts, 'requests')
    const successors = sumOf(counts.filter(({ keyId }) => keyId !== old.id), 'requests')
    return { day, old_key: all - successors, successors, moved: all === 0 ? null : successors / all }
  })
  const moved = days.findLast((day) => day.moved !== null)?.moved ?? null
  const next = nextStep(output, keys, now)
  const keyRows = keys.map((key) => {
    const { id, state, createdAt, lastUsedAt } = key
    // A revoked key has ended before.
    const times = [createdAt, state === 'revoked' ? null : endOf(key), lastUsedAt]
    const cells = times.map((time) => time === null ? '–' : formatTime(time))
    return [id, keyState(key, now), ...cells, formatCount(requestsOf(key))]
  })
  const dayRows = days.slice(-maxShownDays).map(({ day, old_key, successors, moved }) => {
    const share = moved === null
      ? '–'
      : `${Math.floor(moved * 100)}% ${'█'.repeat(Math.round(moved * barWidth))}`
    return [day, formatCount(old_key), formatCount(successors), share]
  })
  const tables = [
    formatTable(['key', 'state', 'created', 'ends', 'last used', 'requests'], keyRows, output),
    formatTable(['day', 'old key', 'successor', 'moved'], dayRows, output),
  ]
  const keysJson = keys.map((key) => ({ ...keyJson(key, now), requests: requestsOf(key) }))
  return { data: { keys: keysJson, moved, next, days }, text: tables.join('\n'), notes: () => [next] }
}

function nextStep(output: Output, keys: readonly Key[], now: number): string {
  const [old, newest] = [keys[0]!, keys.at(-1)!]
  const [oldState, newState] = [keyState(old, now), keyState(newest, now)]
  if (hasEnded(old, now)) return `The rotation is over: key ${old.id} is ${oldState}.`
  if (newState === 'disabled') {
    return `Key ${newest.id} is disabled: ${output.command(`keys enable ${newest.id}`)}`
  }
  if (hasEnded(newest, now)) {
    const issue = output.command(`keys issue ${old.partner} --name NAME`)
    return `Key ${newest.id} is ${newState}. To issue another: ${issue}`
  }
  const end = `Key ${old.id} is ${oldState} and ends ${formatTime(endOf(old))}`
  const use = possibleUse(keys, MS_PER_DAY, now)
  if (use !== undefined) {
    const reason = newest.lastUsedAt === undefined ? 'Its successor is unused' : `It ${use}`
    return `${end}. ${reason}: ask the partner to use ${newest.id}.`
  }
  const finish = output.command(`keys rotation finish ${old.id}`)
  return `${end}, but has not been used for a day. To end it now: ${finish}`
}

const finish: StoreAction<[string, FinishOptions]> = async (store, invocation, id, { quietFor, force }) => {
  const keys = await findRotation(store, id)
  const [old, ...successors] = keys
  const now = timeOf(store)
  const isOver = hasEnded(old, now)
  if (!isOver && !force) {
    if (!successors.some((key) => ['active', 'retiring'].includes(keyState(key, now)))) {
      const detail =
        `Key ${old.id} has no successor in force: requests with it could not move to another key.`
      throw new CliError(1, 'successor_not_in_force', detail, { remedy: toForce(old) })
    }
    // Of days that lie within the period as a whole: the first day's requests may have been before.
    const from = utcDay(now - quietFor + MS_PER_DAY - 1)
    const isCounted = (await store.keyUsage([old.id], from, utcDay(now))).length > 0
    const use = isCounted ? 'is still used' : possibleUse(keys, quietFor, now)
    if (use !== undefined) throw await inUseError(store, old, use, now - quietFor, now)
  }
  const key = await createKeyAdministration(store, invocation).finishRotation(old.id)
  return {
    data: keyJson(key, timeOf(store)),
    text: `Key ${key.id} ${isOver ? `had already ended: it is ${keyState(key, now)}` : 'was ended'}\n`,
  }
}

async function inUseError(store: Store, old: Key, use: string, start: number, now: number) {
  const from = utcDay(Math.min(old.lastUsedAt ?? now, start))
  const counts = Map.groupBy(await store.keyUsage([old.id], from, utcDay(now)), ({ endpoint }) => endpoint)
  const most = Array.from(counts, ([endpoint, each]) => ({ endpoint, requests: sumOf(each, 'requests') }))
    .sort((a, b) => b.requests - a.requests).at(0)
  const where = most
    ? `, since ${from} mostly for ${most.endpoint} (${pluralize(most.requests, 'request')})`
    : ''
  const last = old.lastUsedAt === undefined
    ? ''
    : `: last at ${formatTime(old.lastUsedAt)} or up to two minutes later`
  const members = { last_used_at: optionalRfc3339(old.lastUsedAt), endpoint: null, requests: 0, ...most }
  const detail = `Key ${old.id} ${use}${last}${where}.`
  return new CliError(1, 'key_in_use', detail, { members, remedy: toForce(old) })
}

function toForce({ id }: Key) {
  return { purpose: 'To end it now', command: 'keys rotation finish', args: [id, '--force'] }
}

/**
 * How the oldest of the keys may have been used within the last `ms` milliseconds; `undefined` if it was not: a key without
 * a recorded use may be in use, and uses are known up to the last one that was recorded for any of the keys.
 */
function possibleUse(keys: readonly Key[], ms: number, now: number): string | undefined {
  const usedAt = keys[0]!.lastUsedAt
  if (usedAt === undefined) return 'may be used, as its last use is unknown'
  if (now - usedAt < ms + lastUseMarginMs) return 'is still used'
  const knownUntil = Math.max(...keys.map(({ lastUsedAt = 0 }) => lastUsedAt))
  if (knownUntil - usedAt >= ms + lastUseMarginMs) return undefined
  return 'may still be used, as its successor has no recorded use since'
}

/** The problems of requests, as the partner of the key may read them. */
import { Problem } from '../http/problem.ts'
import { redactPath } from '../http/redact.ts'
import { createLruCache } from '../lib/lru.ts'
import { rfc3339 } from '../lib/time.ts'
import type { Key, KeyFacts } from '../model.ts'
import type { RecordedProblem } from '../ports/reports.ts'
import type { ProblemRecord } from '../wire.ts'

/** The most problems of a key that are kept of an hour. */
export const PROBLEMS_PER_HOUR = 100

/** Keys whose problems are counted; one that is forgotten begins again, and the store keeps the same number. */
const maxProblemKeys = 20_000
/** Problems that wait to be written, of all partners. */
const maxPendingProblems = 1_000

/** The problems that wait to be written. */
export interface ProblemLog {
  /** @param describe Called if the problem is recorded. */
  add(key: Pick<Key, 'id' | 'partner'>, now: number, describe: () => RecordedProblem): void
  drain(): readonly RecordedProblem[]
  /** How many were not recorded because no place was free, since the start. */
  dropped(): number
}

/**
 * Collects problems until they are written: at most `PROBLEMS_PER_HOUR` of a key and hour. When all places are taken, a
 * partner takes one from the partner with the most problems, as long as that one has more.
 */
export function createProblemLog(): ProblemLog {
  const counters = createLruCache<{ hour: number; problems: number }>(maxProblemKeys)
  const pending = new Map<string, RecordedProblem[]>()
  let size = 0
  let dropped = 0

  /** @returns Whether a partner with `count` problems may have another one. */
  function makePlace(count: number): boolean {
    if (size < maxPendingProblems) return true
    dropped++
    let most: RecordedProblem[] = []
    for (const problems of pending.values()) {
      if (problems.length > most.length) most = problems
    }
    if (most.length <= count + 1) return false
    most.pop()
    size--
    return true
  }

  return {
    add({ id, partner }, now, describe) {
      const hour = Math.floor(now / 3_600_000)
      let counter = counters.get(id)
      if (counter?.hour !== hour) counters.set(id, counter = { hour, problems: 0 })
      if (counter.problems >= PROBLEMS_PER_HOUR) return
      const problems = pending.get(partner) ?? []
      if (!makePlace(problems.length)) return
      pending.set(partner, problems)
      problems.push(describe())
      size++
      counter.problems++
    },

    drain() {
      const drained = [...pending.values()].flat()
      pending.clear()
      size = 0
      return drained
    },

    dropped: () => dropped,
  }
}

/** A request that a key made and that got a problem. */
interface FailedRequest {
  readonly requestId: string
  readonly request: { readonly method: string }
  readonly path: string
  /** The instant at which the request was checked, milliseconds since the epoch. */
  readonly now: number
  readonly error: unknown
}

/**
 * Describes the problem of a request to the partner of its key.
 *
 * @param isPrivate Whether the host's code may have thrown it: that may be personal, so only its code is recorded.
 */
export function describeProblem(
  { requestId, request, path, now, error }: FailedRequest,
  { partner, key }: KeyFacts,
  status: number,
  isPrivate: boolean,
): RecordedProblem {
  const known = error instanceof Problem ? error : new Problem('internal')
  const { code, message, members } = isPrivate ? new Problem(known.code) : known
  const record: ProblemRecord = {
    at: rfc3339(now),
    key_id: key.id,
    hint: `…${key.hint}`,
    method: request.method,
    path: redactPath(path).slice(0, 500),
    status,
    code,
    detail: message,
    request_id: requestId,
    required_scope: members.required_scope,
    required_module: members.required_module,
  }
  return {
    partner: partner.slug,
    environment: key.environment,
    keyId: key.id,
    at: now,
    id: requestId,
    record: JSON.stringify(record),
  }
}

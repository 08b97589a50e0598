import type { KeyFacts } from '../../../core/model.ts'
import type { FactSource } from '../../../core/ports/facts.ts'
import { SELECT_FACTS } from '../sql/partners-and-keys.ts'
import type { SqlValue, StoredRow } from '../sql/row-format.ts'
import { readKeyFacts } from '../sql/tables.ts'
import type { PostgresDatabase } from './database.ts'
import { listText } from './sql.ts'

interface PendingLookup {
  readonly id: string
  readonly resolve: (facts: KeyFacts | undefined) => void
  readonly reject: (error: unknown) => void
}

/** The most ids of one statement: in a larger batch, the first would wait for the last. */
const maxBatch = 500

/** The server answers one query while this process reads another. More of them would mean smaller batches. */
const maxInFlight = 2

const selectMany = `${SELECT_FACTS} WHERE k.id = ANY ($1::text[])`

/**
 * Sends a first look-up at once, and batches those that arrive while queries are in flight.
 *
 * @param findKey For a single id, the server needs a quarter of the time that it takes for a list of one.
 */
export function batchKeyLookups(
  { lookUp }: Pick<PostgresDatabase, 'lookUp'>,
  findKey: FactSource['findKey'],
): FactSource['findKey'] {
  let queue: PendingLookup[] = []
  let inFlight = 0

  async function fetchFacts(batch: readonly PendingLookup[]): Promise<void> {
    inFlight++
    try {
      // Under two revisions, one id is asked for twice.
      const [id, ...others] = new Set(batch.map((pending) => pending.id))
      const found = others.length === 0
        ? [await findKey(id!)]
        : (await lookUp<StoredRow>(selectMany, [listText([id!, ...others])])).map(readKeyFacts)
      const facts = new Map(found.map((each) => [each?.key.id, each]))
      for (const { id, resolve } of batch) resolve(facts.get(id))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    inFlight--
    fetchQueued()
  }

  function fetchQueued(): void {
    if (queue.length === 0 || inFlight >= maxInFlight) return
    const batch = queue.slice(0, maxBatch)
    queue = queue.slice(maxBatch)
    void fetchFacts(batch)
  }

  return (id) => {
    // Postgres rejects the NUL, and with it the whole batch.
    if (id.includes('\0')) return undefined
    return new Promise((resolve, reject) => {
      queue.push({ id, resolve, reject })
      fetchQueued()
    })
  }
}

/**
 * Has look-ups of one turn of the event loop share a statement.
 *
 * @param sql Finds one row at most, and casts its parameters.
 */
export function gatherLookUps<R>(
  { lookUp }: Pick<PostgresDatabase, 'lookUp'>,
  sql: string,
): (parameters: readonly SqlValue[]) => Promise<R | undefined> {
  const values = sql.replaceAll(/\$(\d)/g, (_, number) => `(given.value ->> ${number - 1})`)
  // Because of the offset, the planner has each row looked up, instead of joining the tables.
  const selectMany = `SELECT given.position, found.*
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS given (value, position)
    CROSS JOIN LATERAL (${values} OFFSET 0) AS found`
  let waiting: (readonly SqlValue[])[] = []
  let next: Promise<ReadonlyMap<SqlValue, R>> | undefined

  async function send(): Promise<ReadonlyMap<SqlValue, R>> {
    await new Promise<void>((resolve) => setImmediate(resolve))
    const all = waiting
    waiting = []
    next = undefined
    const rows = await lookUp<StoredRow>(selectMany, [JSON.stringify(all)])
    return new Map(rows.map(([position, ...row]) => [position!, row as R]))
  }

  return async (parameters) => {
    const position = waiting.push(parameters)
    return (await (next ??= send())).get(position)
  }
}

import type { KeyFacts } from '../../../../core/model.ts'
import type { FactSource } from '../../../../core/ports.ts'
import type { Asynchronous } from '../../answers.ts'
import type { StoredRow } from '../../row-format.ts'
import { KEY_FACTS_COLUMNS, readKeyFacts } from '../../rows.ts'
import { type Database, listText } from '../connection/database.ts'

/** A look-up that has not been sent yet. */
interface Asked {
  readonly id: string
  readonly found: (facts: KeyFacts | undefined) => void
  readonly failed: (error: unknown) => void
}

/** Ids in one query: more would have the first of them wait for the last. */
const maxBatch = 500

/**
 * Queries under way at once: the server has one while we read the answer of another. With more of them fewer ids come
 * together, and each costs less by far in company.
 */
const maxUnderWay = 2

const select = `SELECT ${KEY_FACTS_COLUMNS}
  FROM partner_api.partner_key k JOIN partner_api.partner p ON p.slug = k.partner WHERE k.id`
const selectOne = `${select} = $1`
const selectMany = `${select} = ANY ($1::text[])`

/**
 * Gathers the ids that are asked for while queries are under way, and asks for them with the next. Who is alone does
 * not wait for company: the first is sent at once.
 */
export function createLookUps(database: Database): Asynchronous<Pick<FactSource, 'findKey'>> {
  let gathered: Asked[] = []
  let underWay = 0

  async function askOne(id: string): Promise<KeyFacts | undefined> {
    underWay++
    try {
      const [row] = await database.lookUp<StoredRow>(selectOne, [id])
      return row && readKeyFacts(row)
    } finally {
      underWay--
      askGathered()
    }
  }

  async function askMany(batch: readonly Asked[]): Promise<void> {
    underWay++
    try {
      // Who asks under two revisions asks twice.
      const ids = new Set(batch.map(({ id }) => id))
      const rows = await database.lookUp<StoredRow>(selectMany, [listText([...ids])])
      const facts = new Map(rows.map(readKeyFacts).map((found) => [found.key.id, found]))
      for (const { id, found } of batch) found(facts.get(id))
    } catch (error) {
      for (const { failed } of batch) failed(error)
    }
    underWay--
    askGathered()
  }

  function askGathered(): void {
    if (gathered.length === 0 || underWay >= maxUnderWay) return
    const batch = gathered.slice(0, maxBatch)
    gathered = gathered.slice(maxBatch)
    void askMany(batch)
  }

  return {
    findKey(id) {
      // No text of Postgres's holds it, and the query would fail for all that are in it.
      if (id.includes('\0')) return Promise.resolve(undefined)
      if (underWay < maxUnderWay) return askOne(id)
      return new Promise((found, failed) => gathered.push({ id, found, failed }))
    },
  }
}

export function createKeyUses(database: Database): Pick<FactSource, 'recordKeyUses'> {
  return {
    async recordKeyUses(uses) {
      if (uses.size === 0) return
      const ids = [...uses.keys()].sort()
      // Locked in one order by all replicas: those who note the same keys at once wait for each other, and never in a
      // circle.
      await database.write(
        `UPDATE partner_api.partner_key k SET last_used_at = used.at FROM (
          SELECT k.id, u.at FROM partner_api.partner_key k
          JOIN unnest($1::text[], $2::bigint[]) AS u (id, at) ON u.id = k.id
          WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k
        ) used WHERE k.id = used.id`,
        [listText(ids), listText(ids.map((id) => uses.get(id)!))],
      )
    },
  }
}

// Your own table: each order belongs to a partner. Test keys have orders of their own.
import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'

export interface Order {
  id: string
  item: string
  quantity: number
  placed_at: string
}

export type Owner = [partner: string, environment: 'live' | 'test']

export function openOrders(file: string) {
  const database = new DatabaseSync(file)
  database.exec(`
    CREATE TABLE IF NOT EXISTS orders (
      id TEXT PRIMARY KEY, partner TEXT NOT NULL, environment TEXT NOT NULL,
      item TEXT NOT NULL, quantity INTEGER NOT NULL, placed_at TEXT NOT NULL, idempotency_key TEXT,
      UNIQUE (partner, environment, idempotency_key));
    CREATE INDEX IF NOT EXISTS orders_by_time ON orders (partner, environment, placed_at, id)`)
  const shown = 'id, item, quantity, placed_at'
  const own = `SELECT ${shown} FROM orders WHERE partner = ? AND environment = ?`
  const list = database.prepare(`${own} AND (placed_at, id) < (?, ?)
    ORDER BY placed_at DESC, id DESC LIMIT ?`)
  const find = database.prepare(`${own} AND id = ?`)
  const findRepeated = database.prepare(`${own} AND idempotency_key = ?`)
  const insert = database.prepare(`INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partner, environment, idempotency_key) DO NOTHING RETURNING ${shown}`)

  return {
    /** Newest first, after the position of an order. */
    list: (after: readonly [string | number, string], owner: Owner, limit: number) =>
      list.all(...owner, ...after, limit) as unknown as Order[],

    find: (id: string, owner: Owner) => find.get(...owner, id) as Order | undefined,

    /** @returns The new order, or the one that was placed before with the same idempotency key. */
    place(item: string, quantity: number, owner: Owner, now: number, key: string | null) {
      const values = [item, quantity, new Date(now).toISOString(), key]
      const placed = insert.get(`ord_${randomUUID()}`, ...owner, ...values)
      return (placed ?? findRepeated.get(...owner, key)) as unknown as Order
    },
  }
}

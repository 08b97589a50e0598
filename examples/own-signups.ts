import { DatabaseSync } from 'node:sqlite'
import { createPartnerApi, type SignupDestination } from 'partner-api'
import { serve } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'

const crm = new DatabaseSync('crm.db')
crm.exec(`CREATE TABLE IF NOT EXISTS lead (
  signup TEXT PRIMARY KEY, source TEXT NOT NULL, mail TEXT NOT NULL, name TEXT NOT NULL, plan TEXT,
  is_test INTEGER NOT NULL, received_at INTEGER NOT NULL)`)
const insert = crm.prepare('INSERT INTO lead VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (signup) DO NOTHING')

const signups: SignupDestination = {
  createSignup({ id, partner, email, name, plan, environment, createdAt }) {
    insert.run(id, partner, email, name, plan ?? null, environment === 'test' ? 1 : 0, createdAt)
  },
}

// The store keeps partners, keys and counts, and no personal data.
const store = await openSqliteStore('partner-api.db')
const api = createPartnerApi({ store, signups })
const server = await serve(api, { port: Number(process.env.PORT ?? 3000) })
console.log('ready')

async function stop() {
  await server.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)

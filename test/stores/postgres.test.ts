import process from 'node:process'
import t from 'tap'
import { wholeStoreContract } from '../contract/store/complete-store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { contractStores } from '../postgres/contract-stores.ts'
import { startServer } from '../postgres/server.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())

await t.test('Postgres', async (t) => {
  const { open, openMany, close } = await contractStores(server)
  t.teardown(close)
  await wholeStoreContract(t, open, openMany)
})

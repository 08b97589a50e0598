import t from 'tap'
import { deployTo } from '../contract/http/deploy.ts'
import { onNode } from '../contract/http/mounts.ts'
import { postgresDatabases } from '../contract/http/stores.ts'
import { httpContract } from '../contract/http/suites.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'

await t.test('Node with PostgreSQL keeps to the contract', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  try {
    await httpContract(t, deployTo(postgresDatabases(server), onNode))
  } finally {
    await server.close()
  }
})

/** The contracts of a store, on a direct connection. */
import fc from 'fast-check'
import t from 'tap'
import { sharedStoreContract, storeContract } from '../contract/store/suites.ts'
import { contractStore, databasesFor } from '../postgres/fixtures.ts'

// The properties run on 60 memory and SQLite stores. PostgreSQL takes ten times as long.
fc.configureGlobal({ numRuns: 15 })
const server = await databasesFor(t)
const { emptied, open, close } = await contractStore(server)
t.teardown(close)
await storeContract(t, emptied)
await sharedStoreContract(t, () => emptied().then(() => open))

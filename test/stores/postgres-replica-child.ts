/** A process that registers as a replica and has nothing else to do, for `postgres-replicas.test.ts`. */
import process from 'node:process'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'

const store = await openPostgresStore(process.env['STORE']!)
await store.replicas.register({
  name: 'child',
  leaseMs: 1_000,
  revalidateEveryMs: 3_600_000,
  revalidate: async () => await store.revision(),
  skewMs: () => 0,
}).registered()
process.stdout.write('joined\n')

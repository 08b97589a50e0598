/** A second process on a store's database, for `store-postgres-migrations.test.ts`: says `ready`, waits for a line. */
import { once } from 'node:events'
import process from 'node:process'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'

process.stdout.write('ready\n')
await once(process.stdin, 'data')
process.stdin.destroy()
const store = await openPostgresStore(process.env['STORE']!)
process.stdout.write(`${store.settings.cursorSecret}\n`)
await store.close()

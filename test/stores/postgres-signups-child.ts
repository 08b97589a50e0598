/** A replica that takes signups, for `store-postgres-signups.test.ts`: says `ready`, waits for a line, does its part. */
import { once } from 'node:events'
import process from 'node:process'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { claim, signup } from '../contract/store/samples.ts'

const [, , name, times] = process.argv

const store = await openPostgresStore(process.env['STORE']!)
process.stdout.write('ready\n')
await once(process.stdin, 'data')
process.stdin.destroy()
const outcomes = await Promise.all(
  Array.from(
    { length: Number(times) },
    (_, attempt) => store.createSignup(signup(`${name}-${attempt}`), claim()),
  ),
)
process.stdout.write(`${JSON.stringify(outcomes)}\n`)
await store.close()

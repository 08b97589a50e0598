/** Sends every kind of statement, and again once its input reports that the server is cut off: `postgres-connections.test.ts`. */
import { once } from 'node:events'
import process from 'node:process'
import { connect } from '../../adapters/stores/postgres/database.ts'

const [url = ''] = process.argv.slice(2)
const database = connect(url)
database.listen(() => {})
const sql = 'SELECT $1::text, $2::bigint, $3::boolean'
const row = ['€', 2 ** 40, false]
const found = [
  ...await Promise.all(Array.from({ length: 20 }, () => database.lookUp(sql, row))),
  await database.asyncCommit(sql, row),
  await database.read(sql, row),
  await database.transaction((query) => query(sql, row)),
  await database.transaction((query) => query(sql, row), { readOnly: true }),
]
await database.notify()
const code = (error: unknown) => error instanceof Error && 'code' in error ? error.code : String(error)
const failure = await database.read('SELECT 1 / $1::integer', [0]).catch(code)
console.log(JSON.stringify([found.every((rows) => JSON.stringify(rows) === JSON.stringify([row])), failure]))

await once(process.stdin, 'data')
const start = performance.now()
console.log(JSON.stringify([await database.lookUp(sql, row).catch(code), performance.now() - start]))

await once(process.stdin, 'end')
console.log(JSON.stringify(await database.lookUp(sql, row)))
// Ends although no connection is closed.

/** Asks a database for all that can be asked, and has nothing left to do then: `store-postgres-runtimes.test.ts`. */
import { once } from 'node:events'
import process from 'node:process'
import { connect } from '../../adapters/stores/postgres/database.ts'

const [url = '', isCut] = process.argv.slice(2)
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
const wrong = await database.read('SELECT 1 / $1::integer', [0]).catch((error: unknown) => error)
const code = (error: unknown) => error instanceof Error && 'code' in error ? error.code : String(error)
console.log(
  JSON.stringify([found.every((rows) => JSON.stringify(rows) === JSON.stringify([row])), code(wrong)]),
)

if (isCut) {
  await once(process.stdin, 'data')
  const start = performance.now()
  const error = await database.lookUp(sql, row).catch((error: unknown) => error)
  console.log(JSON.stringify([code(error), performance.now() - start]))
}
// Nothing is closed.

/**
 * Repeatedly starts two replicas at once on an empty database: `node test/integration/trials/start-together.ts [TIMES, 50]`.
 * Both must serve on one schema without warnings.
 */
import postgres from 'postgres'
import { LATEST } from '../../../adapters/stores/postgres/migrate.ts'
import { median } from '../../bench/report.ts'
import { startServer } from '../../postgres/server.ts'
import { startReplicas } from './replicas.ts'
import { check, countAt, endWithin, ms } from './verdict.ts'

const times = countAt(0, 50)

endWithin(60 + times * 10)
const server = await startServer()
const taken: number[] = []
let unlike = 0
let unwell = 0
let complaints = 0
try {
  for (let time = 0; time < times; time++) {
    const url = await server.createDatabase()
    const startedAt = performance.now()
    const replicas = await startReplicas(2, url)
    const answers = await Promise.all(replicas.map(({ client }) => client.send('/health')))
    taken.push(performance.now() - startedAt)
    unwell += answers.filter(({ status }) => status !== 200).length
    const ends = await Promise.all(replicas.map((replica) => replica.stop()))
    complaints += ends.filter(({ code, stderr }) =>
      code !== 0 || /^(?!.*"level":"info")./m.test(stderr)
    ).length
    const sql = postgres(url, { max: 1 })
    const versions = await sql`select version from partner_api.migration order by version`
    const stores = await sql`select id from partner_api.store`
    await sql.end()
    if (versions.length !== LATEST || stores.length !== 1) unlike++
    await server.dropDatabase(url)
  }
} finally {
  await server.close()
}
console.log(
  `${times} times two replicas on an empty database: both served after ${ms(median(taken))} in the middle, ${
    ms(Math.max(...taken))
  } at the slowest`,
)
check(`one schema is created (${unlike} failures)`, unlike === 0)
check(`both replicas are healthy (${unwell} failures)`, unwell === 0)
check(`both replicas log no warnings and exit with 0 (${complaints} failures)`, complaints === 0)

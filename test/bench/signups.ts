/**
 * Signups over HTTP with 32 connections, each durable before its 201, against one connection, where no two share a commit:
 * SQLite on the disk of the temporary folder, and four replicas on a PostgreSQL with synchronous commit. One connection
 * waits for one commit after another, so that its rate also says what a sync of that disk costs.
 */
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { newFile, type Served, startServing, stopServing } from '../support/cli-program.ts'
import { type Load, load } from './load.ts'
import { PARTNER } from '../support/partner.ts'
import { alternate, figure, median, quantile, type Row, times } from './report.ts'
import { issueKey } from './tenant.ts'

const connections = 32
const rounds = 3
const roundSeconds = 1.5

export async function run(): Promise<Row[]> {
  const file = newFile()
  const store = await openSqliteStore(file)
  const key = await issueKey(store)
  await store.close()
  const sqlite = await measure('SQLite', `sqlite:${file}`, key, 1)
  const reason = hasServer()
  if (reason !== undefined) return [sqlite, { part: 'signups', what: 'not measured', ours: reason }]
  const server = await startServer({ durable: true })
  try {
    const url = await server.createDatabase()
    const store = await openPostgresStore(url)
    const key = await issueKey(store)
    await store.close()
    return [sqlite, await measure('PostgreSQL, four replicas', url, key, 4)]
  } finally {
    await server.close()
  }
}

async function measure(what: string, store: string, key: string, replicas: number): Promise<Row> {
  const served: Served[] = []
  try {
    const args = ['serve', '--port', '0', '--limit', 'key=0', '--limit', 'signup=0']
    while (served.length < replicas) served.push(await startServing(args, store))
    const ports = served.map(({ url }) => Number(new URL(url).port))
    const [many, one] = await alternate(
      rounds,
      1,
      [connections, 1].map((count) => () => load(ports, count, roundSeconds, () => nextRequest(key))),
    ) as [Load[], Load[]]
    const ratio = median(many.map(({ perSecond }, round) => perSecond / one[round]!.perSecond))
    return {
      part: 'signups',
      what: `${what}: ${connections} connections, and one`,
      ours: described(many),
      against: described(one),
      ratio: times(ratio),
    }
  } finally {
    await Promise.all(served.map((each) => stopServing(each)))
  }
}

function described(loads: readonly Load[]): string {
  const latencies = loads.flatMap((load) => load.times)
  const [p50, p99] = [median(latencies), quantile(latencies, 0.99)].map((ms) => figure(ms, 'ms'))
  return `${figure(median(loads.map(({ perSecond }) => perSecond)), '/s')}, p50 ${p50}, p99 ${p99}`
}

let number = 0

function nextRequest(key: string): string {
  number++
  const body = JSON.stringify({
    partner: PARTNER,
    email: `someone${number}@mail.example`,
    name: `Someone ${number}`,
    country: 'GB',
    company: 'Example Ltd',
    message: 'Please call me back.',
  })
  return `POST /service/partner/signups HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nIdempotency-Key: ${crypto.randomUUID()}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
}

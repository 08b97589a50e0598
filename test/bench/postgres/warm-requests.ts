/** What requests cost Postgres whose keys and answers a replica knows: its own statistics say it. */
import type { Sql } from 'postgres'
import type { Store } from '../../../core/ports/store.ts'
import { startServing, stopServing } from '../../support/cli-program.ts'
import { CACHED_TARGET, issueKey } from '../data/tenant.ts'
import { figure } from '../figures.ts'
import { load } from '../http/load.ts'
import type { Row } from '../report.ts'
import { forgetStatements, kindOf, listStatements, type Statement } from './statements.ts'

const requests = 100_000
const connections = 32
/** So that parts of it have to be asked for. */
const quota = 1_000_000

/** Reads one page with one key, again and again, from a replica in a process of its own. */
export async function warmRows(url: string, store: Store, admin: Sql): Promise<Row[]> {
  const key = await issueKey(store)
  const served = await startServing(['serve', '--port', '0', '--limit', `key=${quota}/60`], url)
  try {
    const { port } = new URL(served.url)
    const request =
      `GET ${CACHED_TARGET} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nAuthorization: Bearer ${key}\r\n\r\n`
    const ask = (seconds: number) => load(Number(port), connections, seconds, () => request)
    await ask(0.5)
    await forgetStatements(admin)
    let answers = 0
    let seconds = 0
    while (answers < requests) {
      const one = await ask(1)
      answers += one.answers
      seconds += one.seconds
    }
    const statements = await listStatements(admin, new URL(url).pathname.slice(1))
    return rowsOf(statements, answers, seconds)
  } finally {
    await stopServing(served)
  }
}

function rowsOf(statements: readonly Statement[], answers: number, seconds: number): Row[] {
  const others = statements.filter((statement) => kindOf(statement) === undefined)
  const counted = Map.groupBy(statements, (statement) => kindOf(statement) ?? 'anything else')
  const sum = (some: readonly Statement[]): number => some.reduce((total, { calls }) => total + calls, 0)
  return [
    {
      part: 'postgres',
      what:
        `${answers.toLocaleString('en')} warm reads in ${figure(seconds, 's')}: statements besides polls, ` +
        'leases and flushes',
      ours: String(sum(others)),
      target: '0',
      met: sum(others) === 0,
    },
    ...[...counted].flatMap(([kind, some]) =>
      some.map(({ text, calls }): Row => ({
        part: 'postgres',
        what: `  ${kind}: ${shortened(text)}`,
        ours: String(calls),
      }))
    ),
  ]
}

/** Enough of a statement to know it again. */
function shortened(text: string): string {
  const words = text.replaceAll(/\s+/g, ' ').trim()
  return words.length <= 60 ? words : `${words.slice(0, 59)}…`
}

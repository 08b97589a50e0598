/**
 * Kills a worker of `serve --workers 4` on SQLite under load and revokes a key with --wait, several times:
 * `node test/integration/trials/workers.ts [TIMES, 3]`. Prints what clients lose and how long a new worker takes.
 */
import process from 'node:process'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import { until } from '../../postgres/until.ts'
import { newFile, programOn, type Served, startServing, stopServing } from '../../support/cli-program.ts'
import { createClient, type Reply, startLoad } from './client.ts'
import { createTenant, NO_LIMITS, READ } from './tenant.ts'
import { check, countAt, endWithin, ms } from './verdict.ts'

const times = countAt(0, 3)
endWithin(300)
const file = newFile()
const store = await openSqliteStore(file)
const { issue } = await createTenant(store)
const url = `sqlite:${file}`
const { json } = programOn(url)
const { text: loadKey } = await issue()

/** The starts of workers so far. */
function workerLog(
  { child, words }: Served,
): { readonly worker: number; readonly pid: number; readonly at: number }[] {
  const started: { worker: number; pid: number; at: number }[] = []
  const read = (text: string) => {
    for (const line of text.split('\n')) {
      if (line.includes('"worker_started"')) started.push({ ...JSON.parse(line), at: performance.now() })
    }
  }
  read(words)
  child.stderr.on('data', read)
  return started
}

const args = ['serve', '--workers', '4', '--port', '0', '--replica-name', 'web', ...NO_LIMITS]
const served = await startServing(args, url)
process.on('exit', () => served.child.kill('SIGKILL'))
const started = workerLog(served)
await until(() => started.length === 4, 'four workers')
for (let time = 0; time < times; time++) {
  const victim = started[time]!
  const client = createClient(served.url)
  const load = startLoad(() => client.send(READ, { key: loadKey }), 64, 5)
  await until(() => load.replies.length > 500, 'load')
  const killedAt = performance.now()
  process.kill(victim.pid, 'SIGKILL')
  await until(() => started.length === 5 + time, 'a new worker')
  const restartMs = started.at(-1)!.at - killedAt
  const count = load.replies.length
  await until(() => load.replies.length > count + 500, 'load')
  const replies = await load.stop()
  const lost = replies.filter(({ status }) => status === 0).length
  const { text: key, key: { id } } = await issue()
  const revoking = startLoad(() => client.send(READ, { key }), 32, 2)
  await until(() => revoking.replies.filter(({ status }) => status === 200).length > 200, 'the key to work')
  const { receipt } = await json('keys', 'revoke', id, '--wait')
  const reportedAt = performance.now()
  await until(() => revoking.replies.filter(({ askedAt }) => askedAt > reportedAt).length > 200, 'requests')
  const late = (await revoking.stop()).filter(({ askedAt, status }) => askedAt > reportedAt && status === 200)
  await client.close()
  console.log(
    `worker ${victim.worker} killed: ${lost} of ${replies.length} requests lost, replaced after ${
      ms(restartMs)
    }; ` +
      `revoked everywhere after ${ms(receipt.ms)}`,
  )
  check(
    'no request gets another status than 200',
    replies.every(({ status }: Reply) => status === 0 || status === 200),
  )
  check('at most the requests of a worker are lost', lost <= 64)
  const names = receipt.replicas.filter(({ applied }) => applied).map(({ name }) => name).sort()
  check('--wait names all four', `${names}` === 'web/1,web/2,web/3,web/4')
  check('no worker accepts the key afterwards', late.length === 0)
}
const { code } = await stopServing(served)
check('all drain with exit code 0', code === 0)

await store.close()

/**
 * Spends the quota of a month while servers, and once PostgreSQL, are killed with SIGKILL:
 * `node test/integration/trials/quota-month.ts [RUNS, 3]`. Never more than the quota passes, whatever is killed, and each
 * server that is killed costs at most its share of 2 %, and the request that it had not answered.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../postgres/until.ts'
import { startServer } from '../../postgres/server.ts'
import { newFile } from '../../support/cli-program.ts'
import { createPartner, PARTNER } from '../../support/partner.ts'
import { check, countAt, endWithin, NO_LIMITS, openStore, READ, type Replica, startReplica } from './setup.ts'

const quota = 600
const size = 4
const kills = 3
const runs = countAt(0, 3)
endWithin(120 * runs + 60)

/** Sends one request after the other to each server, until the quota is spent. */
function startSpending(replicas: readonly Replica[], key: string) {
  const statuses: number[] = []
  let isStopped = false
  const senders = replicas.map(async (_, index) => {
    // A killed server is replaced; the refusals of all say that the quota is spent.
    for (let refused = 0; refused < 20 && !isStopped;) {
      const { status } = await replicas[index]!.client.send(READ, { key })
      statuses.push(status)
      refused = status === 429 ? refused + 1 : 0
      if (status !== 200) await sleep(5)
    }
  })
  const count = (status: number) => statuses.filter((each) => each === status).length
  return {
    count,
    ended: Promise.all(senders),
    stop: () => isStopped = true,
    reaches: (accepted: number) => until(() => count(200) >= accepted, `${accepted} requests to pass`),
  }
}

async function openScene(url: string, count: number, args: readonly string[]) {
  const store = await openStore(url)
  const { partners, issue } = await createPartner(store)
  await partners.update(PARTNER, { limits: { set: { month: { quota, windowSeconds: 1 } } } })
  const { text: key } = await issue()
  const start = (index: number) => startReplica(`replica-${index + 1}`, url, [...NO_LIMITS, ...args])
  const replicas = await Promise.all(Array.from({ length: count }, (_, index) => start(index)))
  const spending = startSpending(replicas, key)
  return {
    replicas,
    spending,
    async restart(index: number) {
      await replicas[index]!.kill()
      replicas[index] = await start(index)
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.stop()))
      await store.close()
    },
  }
}

/** @param lost What killed servers had leased and not answered, at most. */
function checkCount({ count }: ReturnType<typeof startSpending>, lost: number): void {
  const [accepted, refused, unavailable, unanswered] = [200, 429, 503, 0].map(count)
  console.log(`    ${refused} times 429, ${unavailable} times 503, ${unanswered} without an answer`)
  check(`at most ${quota} requests pass (${accepted})`, accepted! <= quota)
  const least = quota - lost
  check(`at least ${least} requests pass (${accepted})`, accepted! >= least)
}

async function killServers(url: string): Promise<void> {
  console.log(`${size} servers on ${url.split(':')[0]}, ${kills} of which are killed:`)
  const { spending, restart, close } = await openScene(url, size, [])
  for (let kill = 0; kill < kills; kill++) {
    await spending.reaches(quota * (kill + 1) / (kills + 2))
    await restart(kill % size)
  }
  await spending.ended
  checkCount(spending, kills * (Math.floor(quota * 0.02 / size) + 1))
  await close()
}

async function killWorkers(): Promise<void> {
  console.log(`${size} workers on sqlite, ${kills} of which are killed:`)
  const { replicas, spending, close } = await openScene(`sqlite:${newFile()}`, 1, ['--workers', String(size)])
  const pids = () =>
    replicas[0]!.events().flatMap((event) => 'pid' in event && typeof event.pid === 'number' ? event.pid : [])
  for (let kill = 0; kill < kills; kill++) {
    await spending.reaches(quota * (kill + 1) / (kills + 2))
    const pid = pids()[kill]
    if (pid === undefined) throw new Error('the log names no worker')
    process.kill(pid, 'SIGKILL')
  }
  await spending.ended
  checkCount(spending, kills * (Math.floor(quota * 0.02 / size) + 1))
  await close()
}

async function killDatabase(server: Awaited<ReturnType<typeof startServer>>): Promise<void> {
  console.log(`${size} servers on postgres, which is killed:`)
  const { spending, restart, close } = await openScene(await server.createDatabase(), size, [])
  await spending.reaches(quota / 3)
  await server.kill()
  await sleep(300)
  await server.restart()
  await spending.reaches(quota * 2 / 3)
  await server.kill()
  await server.restart()
  await restart(0)
  await spending.ended
  // A lease whose answer is lost stays counted, too.
  checkCount(spending, (2 * size + 1) * Math.max(1, Math.floor(quota * 0.02 / size)) + spending.count(503))
  await close()
}

const server = await startServer()
for (let run = 0; run < runs; run++) {
  await killServers(await server.createDatabase())
  await killServers(`sqlite:${newFile()}`)
  await killWorkers()
  await killDatabase(server)
}
await server.close()
process.exit()

/**
 * Kills a server on a SQLite file with SIGKILL during signups: `node test/integration/trials/kill-server.ts [KILLS, 50]`. Every
 * acknowledged signup must be in the store once. Signups without a response are repeated with their keys. So are the
 * latest acknowledged ones, which get the same response again.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { newFile } from '../../support/cli-program.ts'
import { createPartner } from '../../support/partner.ts'
import { checkSignups, signUp, startSigning } from './load.ts'
import { check, countAt, endWithin, openStore, startReplica } from './setup.ts'

const kills = countAt(0, 50)
endWithin(120 + kills * 10)
const url = `sqlite:${newFile()}`
const store = await openStore(url)
const { text: key } = await (await createPartner(store)).issue()
let replica = await startReplica('only', url)
const clients = [replica.client]
const signing = startSigning(clients, key, 8)
let [replayed, wrong] = [0, 0]

/** Repeats the latest acknowledged signups. */
async function replay(): Promise<void> {
  for (const { number, id } of signing.acknowledged.slice(-20)) {
    const { status, body } = await signUp(replica.client, key, number)
    replayed++
    if (status !== 201 || JSON.parse(body).data.id !== id) wrong++
  }
}

for (let kill = 0; kill < kills; kill++) {
  await sleep(30 + Math.random() * 250)
  await replica.kill()
  replica = await startReplica('only', url)
  clients[0] = replica.client
  await replay()
}
await signing.stop()
await replay()
await replica.stop()
console.log(`${kills} kills:`)
await checkSignups(store, signing.acknowledged.map(({ id }) => id), signing.retries())
check(`${replayed} repeated signups get their first response (${wrong} do not)`, replayed > 0 && wrong === 0)
process.exit()

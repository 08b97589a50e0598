/** Another process that takes signups, for `store-sqlite-signups.test.ts`: says `ready`, waits for a line, does its part. */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import process from 'node:process'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { claim, signup } from '../contract/store/samples.ts'

const [, , part, file, name, times] = process.argv

// Synchronous on purpose: what is said is said before the process can be killed.
const say = (line: string) => writeSync(1, `${line}\n`)

const store = await openSqliteStore(file!)
say('ready')
await once(process.stdin, 'data')
process.stdin.destroy()

if (part === 'same-key') {
  const outcomes: unknown[] = []
  for (let attempt = 0; attempt < Number(times); attempt++) {
    outcomes.push(await store.createSignup(signup(`${name}-${attempt}`), claim()))
  }
  say(JSON.stringify(outcomes))
  await store.close()
} else {
  // Until it is killed: each signup under a key of its own, acknowledged once it is kept.
  for (let attempt = 0;; attempt++) {
    const sent = signup(`${name}-${attempt}`, { plan: 'pro' })
    await store.createSignup(sent, claim({ key: `${name}-${attempt}` }))
    say(sent.id)
  }
}

/** Another process on a store's file, for `sqlite-processes.test.ts`: prints `ready`, waits for a line, does its part. */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import process from 'node:process'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { actor, profile, reservation, signup, T0 } from '../contract/store/samples.ts'

const [, , part, file, ...more] = process.argv

// Synchronous, so that a line is written before the process can be killed.
const print = (line: string) => writeSync(1, `${line}\n`)

async function ready(): Promise<void> {
  print('ready')
  await once(process.stdin, 'data')
  process.stdin.destroy()
}

if (part === 'open') {
  await ready()
  print((await openSqliteStore(file!)).settings.cursorSecret)
  process.exit()
}

const store = await openSqliteStore(file!)
await ready()

if (part === 'import') {
  // Each step of the import takes the write lock once, and then waits: killed after so many steps.
  let steps = Number(more[0])
  const { setTimeout } = globalThis
  globalThis.setTimeout = ((...words: Parameters<typeof setTimeout>) =>
    --steps === 0 ? process.kill(process.pid, 'SIGKILL') : setTimeout(...words)) as typeof setTimeout
  const records = Array.from({ length: 6000 }, (_, index) =>
    profile(`p${index}`))
  await store.importContent('profiles', records, { now: T0, actor })
  print('done')
} else if (part === 'same-key') {
  const [name, times] = more
  const outcomes: unknown[] = []
  for (let attempt = 0; attempt < Number(times); attempt++) {
    outcomes.push(await store.createSignup(signup(`${name}-${attempt}`), reservation()))
  }
  print(JSON.stringify(outcomes))
} else {
  // Until it is killed: each signup with a key of its own, acknowledged once it is stored.
  for (let attempt = 0;; attempt++) {
    const sent = signup(`${more[0]}-${attempt}`, { plan: 'pro' })
    await store.createSignup(sent, reservation({ key: `${more[0]}-${attempt}` }))
    print(sent.id)
  }
}

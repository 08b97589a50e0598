/** A second process on a store's file, for `store-sqlite.test.ts`: says `ready`, waits for a line, does its part. */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import process from 'node:process'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { actor, profile, T0 } from '../contract/store/samples.ts'

const [, , part, file] = process.argv

// Synchronous on purpose: the process may be killed at once.
const say = (line: string) => writeSync(1, `${line}\n`)
const wait = async () => {
  await once(process.stdin, 'data')
  process.stdin.destroy()
}

if (part === 'open') {
  say('ready')
  await wait()
  const store = await openSqliteStore(file!)
  say(store.settings.cursorSecret)
} else {
  const store = await openSqliteStore(file!)
  say('ready')
  await wait()
  const kill = () => process.kill(process.pid, 'SIGKILL')
  const steps = Number(process.argv[4])
  // Each step of the build takes the lock once: it is killed when it has done so many.
  const timeout = globalThis.setTimeout
  let step = 0
  globalThis.setTimeout = ((...words: Parameters<typeof timeout>) =>
    ++step === steps ? kill() : timeout(...words)) as typeof timeout
  const records = Array.from({ length: 6000 }, (_, index) =>
    profile(`p${index}`))
  await store.importContent('profiles', records, { now: T0, actor })
  say('done')
}

/** A second process on a store's file, for `store-sqlite.test.ts`: says `ready`, waits for a line, does its part. */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import process from 'node:process'
import { openSqliteStore } from '../adapters/stores/sqlite/store.ts'
import { actor, profile, T0 } from './contract/store/samples.ts'

const [, , part, file] = process.argv

// Synchronous on purpose: an import lets no stream write before it has ended.
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
  const records = Array.from({ length: 25_000 }, (_, index) => profile(`p${index}`))
  say('ready')
  await wait()
  store.importContent('profiles', records, {
    now: T0,
    actor,
    progress(done) {
      if (done < 20_000) return
      say(`${done} written`)
      // Until it is killed, with its transaction open.
      for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    },
  })
}

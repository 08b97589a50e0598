/** A copy that stands still at a place, for who kills it: `node child.ts FROM TO DOING TABLE ROWS`. */
import { writeSync } from 'node:fs'
import process from 'node:process'
import { copyStore } from '../../../adapters/stores/copy/copy.ts'
import { openSource, openTarget } from '../../../cli/commands/store.ts'

const [, , from, to, doing, table, rows] = process.argv

await copyStore(await openSource(from!), await openTarget(to!), {
  now: Date.now(),
  progress(now, at, seen) {
    if (now !== doing || at !== table || seen < Number(rows)) return
    writeSync(1, `${now} ${at} ${seen}\n`)
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
})

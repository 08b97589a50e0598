/** Changes of many keys: beside a writer, interrupted, and in bounded memory. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { ending, programOn, startProgram, temporaryFolder } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { addKeys, keysOf, ROTATED_LINE, runSlowly } from '../support/many-keys.ts'

test('changes of many keys finish beside a steady writer', async (t) => {
  const { url, store, json, partners } = await createStore()
  await partners.create({ slug: 'busy', name: 'Busy', modules: [] })
  await addKeys(store, 130)
  const modules = ['stores/sqlite/store.ts', '../core/admin/partners.ts']
    .map((path) => JSON.stringify(new URL(`../../adapters/${path}`, import.meta.url).href))
  // Commits every few milliseconds, in less time than a change of a hundred keys takes.
  const writer = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `import { openSqliteStore } from ${modules[0]}
    import { createPartnerAdministration } from ${modules[1]}
    const store = await openSqliteStore(${JSON.stringify(url.slice('sqlite:'.length))})
    const partners = createPartnerAdministration(store, { actor: 'writer' })
    for (let n = 0;; n++) {
      await partners.update('busy', { name: 'Busy ' + n }).catch(() => {})
      if (n === 0) console.log('ready')
      await new Promise((resolve) => setTimeout(resolve, 4))
    }`,
  ], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => writer.kill('SIGKILL'))
  await once(writer.stdout, 'data')
  for (const name of ['disable', 'enable', 'rotate', 'revoke']) {
    const { code, data, error } = await json('keys', name, '--partner', 'acme', '--yes')
    t.equal(code, 0, `${name}: ${error?.detail ?? ''}`)
    t.ok(data.length >= 130, `${name}: ${data.length}`)
  }
})

test('an interrupted rotation into a file loses no key, and is resumed', async (t) => {
  const { store, url } = await createStore()
  const rotate = ['keys', 'rotate', '--partner', 'acme', '--yes']
  await addKeys(store, 300)
  const out = join(temporaryFolder(), 'interrupted.keys')
  const child = startProgram([...rotate, '--json', '--out', out], { env: { PARTNER_API_STORE: url } })
  const ended = ending(child)
  // A pipe holds fewer results than there are keys: the program waits for this.
  child.stdout.once('data', () => child.kill('SIGINT'))
  t.equal((await ended).signal, 'SIGINT')
  const rotatedIn = (text: string) => text.trim().split('\n').map((line) => ROTATED_LINE.exec(line)?.[1])
  const kept = rotatedIn(readFileSync(out, 'utf8'))
  const rotated = (await keysOf(store)).filter(({ successorId }) => successorId !== undefined)
  t.ok(kept.length < 300, 'it was interrupted')
  t.same(kept.toSorted(), rotated.map(({ id }) => id).sort())

  const { code, stdout } = await programOn(url).run(...rotate)
  t.equal(code, 0)
  const all = (await keysOf(store)).map(({ id }) => id).filter((id) => /^key\d{9}$/.test(id))
  t.same([...kept, ...rotatedIn(stdout)].sort(), all.sort(), 'each key was rotated once')
})

test('memory does not grow with 2,000 keys', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const { store, url } = await createStore()
  await addKeys(store, 2_000)
  const heap: number[] = []
  let count = 0
  const { code } = await runSlowly(
    url,
    ['keys', 'rotate', '--partner', 'acme', '--yes', '--quiet'],
    async () => {
      if (++count % 450 === 0) {
        collect()
        // What is finalized now can be collected then.
        await new Promise(setImmediate)
        collect()
        heap.push(process.memoryUsage().heapUsed)
      }
    },
  )
  t.same([code, heap.length], [0, 4])
  t.ok(heap[3]! - heap[1]! < 500_000)
})

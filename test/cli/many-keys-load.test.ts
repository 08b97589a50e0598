/** Changes of many keys: beside a writer, killed in the middle, and in bounded memory. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Test, test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { databasesFor } from '../postgres/fixtures.ts'
import { ending, programOn, startProgram, temporaryFolder } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { addKeys, keysOf, ROTATED_LINE, runSlowly } from '../support/many-keys.ts'
import { createPartner } from '../support/partner.ts'

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

/** Kills the program in the middle, and lets it rotate the rest. */
async function interrupt(
  t: Test,
  url: string,
  store: Store,
  signal: NodeJS.Signals,
  out?: string,
): Promise<void> {
  const { run } = programOn(url)
  const args = ['keys', 'rotate', '--partner', 'acme', '--yes']
  await addKeys(store, 300)
  const more = ['--json', ...out === undefined ? [] : ['--out', out]]
  const child = startProgram([...args, ...more], { env: { PARTNER_API_STORE: url } })
  const ended = ending(child)
  // A pipe holds fewer results than there are keys: the program waits for this.
  child.stdout.once('data', () => child.kill(signal))
  const { stdout, signal: endedBy } = await ended
  t.equal(endedBy, signal)
  const text = out === undefined ? stdout : readFileSync(out, 'utf8')
  const results = text.matchAll(
    /(?:"old_id":"|^)(\w{12})(?:","id":"| )\w{12}(?:","key":"| )spk_live_\w{51}\b/gm,
  )
  const kept = Array.from(results, ([, id]) => id!)
  const rotated = (await keysOf(store)).filter(({ successorId }) => successorId !== undefined)
  const lost = rotated.map(({ id }) => id).filter((id) => !kept.includes(id))
  t.ok(kept.length > 0 && rotated.length < 300, 'it was interrupted')
  t.ok(lost.length <= (signal === 'SIGKILL' ? 1 : 0), `${lost.length} keys are lost`)

  const { code, stdout: rest } = await run(...args)
  t.equal(code, 0)
  const resumed = rest.trim().split('\n').map((text) => ROTATED_LINE.exec(text)?.[1])
  const all = (await keysOf(store)).map(({ id }) => id).filter((id) => /^key\d{9}$/.test(id))
  t.same([...kept, ...lost, ...resumed].sort(), all.sort(), 'each key was rotated once')
}

test('a killed rotation is resumed on SQLite', async (t) => {
  const { store, url } = await createStore()
  await interrupt(t, url, store, 'SIGKILL')
})

test('an interrupted rotation into a file loses no key', async (t) => {
  const { store, url } = await createStore()
  await interrupt(t, url, store, 'SIGINT', join(temporaryFolder(), 'interrupted.keys'))
})

test('a killed rotation is resumed on PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const url = await (await databasesFor(t)).createDatabase()
  const store = await openPostgresStore(url)
  t.teardown(() => store.close())
  await createPartner(store)
  await interrupt(t, url, store, 'SIGKILL')
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
    () => {
      if (++count % 450 === 0) {
        collect()
        heap.push(process.memoryUsage().heapUsed)
      }
      return Promise.resolve()
    },
  )
  t.same([code, heap.length], [0, 4])
  t.ok(heap[3]! - heap[1]! < 500_000)
})

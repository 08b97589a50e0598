/** Many keys of a partner, and the program on them. */
import { Readable, Writable } from 'node:stream'
import { run } from '../../cli/program.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import type { Key } from '../../core/model.ts'
import { readKeys, type Store } from '../../core/ports/store.ts'
import { cleanEnv } from './cli-program.ts'

/** What the program prints about a rotated key: its id, the id of the new one, and the new key. */
export const ROTATED_LINE = /^(\w{12}) (\w{12}) (spk_live_\2_\w{38})$/

/** The keys of a store. */
export async function keysOf(store: Pick<Store, 'listKeys'>): Promise<readonly Key[]> {
  return await Array.fromAsync(readKeys(store))
}

/** Adds keys of acme in one transaction. */
export async function addKeys(store: Store, count: number): Promise<void> {
  const keys = createKeyAdministration(store, { actor: 'test' })
  const { key: model } = await keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
  await keys.revoke(model.id)
  const changes = Array.from({ length: count }, (_, index) => ({
    type: 'key.issued' as const,
    key: { ...model, id: `key${String(index).padStart(9, '0')}`, digest: String(index).padStart(64, '0') },
  }))
  await store.apply(changes, (await store.revision()).facts, { actor: 'test', at: Date.now() })
}

/** Runs the program in this process. @param onText Gets what it writes to standard output, before it goes on. */
export async function runSlowly(
  url: string,
  args: readonly string[],
  onText: (text: string) => Promise<void>,
) {
  const output = { stdout: '', stderr: '' }
  const stdout = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      output.stdout += text
      onText(text).then(() => done(), done)
    },
  })
  stdout.on('error', () => {})
  const stderr = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      output.stderr += text
      done()
    },
  })
  const env = cleanEnv({ PARTNER_API_STORE: url })
  const code = await run(args, '0.0.0', { env, stdin: Readable.from([]), stdout, stderr })
  return { code, ...output }
}

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collect } from '../../adapters/stores/content-text.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import type { Store, StoreSettings } from '../../core/ports/store.ts'
import { type Filling, fillWorld } from '../support/world.ts'

/** A call of a store that changed it: the method and what it was given. */
export type Write = readonly [
  method: 'apply' | 'importContent' | 'removeContent',
  words: readonly unknown[],
]

/** A world that was made once, to be served again and again. */
export interface Copied {
  readonly filling: Filling
  /** Makes a store of one's own with the world in it. @returns Where it is. */
  copy(): string | Promise<string>
  /** Removes a copy that is no longer open. */
  discard(address: string): void | Promise<void>
}

/** One in SQLite files, and as all that it took to make it. */
export interface Template extends Copied {
  readonly settings: StoreSettings
  /** All that was written, in order. */
  readonly writes: readonly Write[]
  copy(): string
  remove(): void
}

/** Makes a world. */
export async function makeTemplate(): Promise<Template> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-matrix-'))
  const original = join(folder, 'original.db')
  const store = await openSqliteStore(original)
  const writes: Write[] = []
  const { keys, lines, importedAt } = await fillWorld(recording(store, writes))
  // The last connection leaves one file.
  await store.close()
  let copies = 0
  return {
    filling: { keys, lines, importedAt },
    settings: store.settings,
    writes,
    copy() {
      const file = join(folder, `${copies++}.db`)
      copyFileSync(original, file)
      return file
    },
    discard: (file) => rmSync(file),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

function recording(store: Store, writes: Write[]): Store {
  return {
    ...store,
    apply(...words) {
      writes.push(['apply', words])
      return store.apply(...words)
    },
    async importContent(kind, records, options) {
      // Gathered: they can be read once, and are written to several stores.
      const all = await collect(records)
      writes.push(['importContent', [kind, all, options]])
      return await store.importContent(kind, all, options)
    },
    removeContent(...words) {
      writes.push(['removeContent', words])
      return store.removeContent(...words)
    },
  }
}

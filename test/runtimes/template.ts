import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collect } from '../../adapters/stores/content.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import type { Store, StoreSettings } from '../../core/ports/store.ts'
import { fillWorld, type WorldContents } from '../support/world.ts'

/** A store call that changed data: the method and its arguments. */
export type Write = readonly [
  method: 'apply' | 'importContent' | 'removeContent',
  words: readonly unknown[],
]

/** A world that is created once and copied for each service. */
export interface Copied {
  readonly filling: WorldContents
  /** Creates a copy. @returns Its address. */
  copy(): string | Promise<string>
  /** Removes a closed copy. */
  discard(address: string): void | Promise<void>
}

/** A template in a SQLite file, and the writes that created it. */
export interface Template extends Copied {
  readonly settings: StoreSettings
  /** All writes in order. */
  readonly writes: readonly Write[]
  copy(): string
  remove(): void
}

/** Creates a world. */
export async function makeTemplate(): Promise<Template> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-matrix-'))
  const original = join(folder, 'original.db')
  const store = await openSqliteStore(original)
  const writes: Write[] = []
  const { keys, lines, importedAt } = await fillWorld(recording(store, writes))
  // Closing the last connection leaves a single file.
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
      // Collected, because they can be read once and are written to several stores.
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

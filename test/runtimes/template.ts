import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { fillWorld, type WorldContents } from '../support/world.ts'

/** A world that is created once and copied for each service. */
export interface Copied {
  readonly filling: WorldContents
  /** Creates a copy. @returns Its address. */
  copy(): string | Promise<string>
  /** Removes a closed copy. */
  discard(address: string): void | Promise<void>
}

/** A template in a SQLite file. */
export interface Template extends Copied {
  copy(): string
  remove(): void
}

/** Creates a world. */
export async function makeTemplate(): Promise<Template> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-matrix-'))
  const original = join(folder, 'original.db')
  const store = await openSqliteStore(original)
  const { keys, lines, importedAt } = await fillWorld(store)
  // Closing the last connection leaves a single file.
  await store.close()
  let copies = 0
  return {
    filling: { keys, lines, importedAt },
    copy() {
      const file = join(folder, `${copies++}.db`)
      copyFileSync(original, file)
      return file
    },
    discard: (file) => rmSync(file),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

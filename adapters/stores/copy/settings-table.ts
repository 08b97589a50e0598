import type { MaybePromise } from '../../../core/ports.ts'
import type { WritableTable } from './archive.ts'
import type { Setting } from './tables.ts'

/** The row of an SQL store that holds its settings. */
export interface SettingsRow {
  readonly keyPrefix: string
  readonly cursorSecret: string
  readonly auditSequence: number
  readonly auditSeal: string
}

/** That row as a table of settings. */
export function createSettingsTable(
  readRow: () => MaybePromise<SettingsRow>,
  writeRow: (row: SettingsRow) => MaybePromise<void>,
): WritableTable<Setting> {
  return {
    async read(after, limit) {
      const from = after?.[0] ?? ''
      return settingsOf(await readRow()).filter(({ name }) => name > from).slice(0, limit)
    },
    async write(put) {
      const row = { ...await readRow() }
      for (const { name, value } of put) {
        if (name === 'key_prefix') row.keyPrefix = value
        else if (name === 'cursor_secret') row.cursorSecret = value
        else {
          const [sequence, seal = ''] = value.split(' ')
          row.auditSequence = Number(sequence)
          row.auditSeal = seal
        }
      }
      await writeRow(row)
    },
  }
}

/** By name. */
function settingsOf({ keyPrefix, cursorSecret, auditSequence, auditSeal }: SettingsRow): Setting[] {
  return [
    { name: 'audit_head', value: `${auditSequence} ${auditSeal}` },
    { name: 'cursor_secret', value: cursorSecret },
    { name: 'key_prefix', value: keyPrefix },
  ]
}

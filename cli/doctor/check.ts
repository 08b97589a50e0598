import type { Migration } from '../../adapters/stores/sql/schema.ts'
import { formatCount, joinList } from '../output/text.ts'

export type Severity = 'warning' | 'error'

/** Every check, and how severe what it finds is. */
export const CHECKS = {
  'key-files': 'error',
  'schema': 'error',
  'indexes': 'warning',
  'store-files': 'error',
  'disk-space': 'warning',
  'wal-size': 'warning',
  'store-clock': 'warning',
  'server-clocks': 'warning',
  'server-revisions': 'warning',
  'server-staleness': 'warning',
  'postgres-tls': 'warning',
  'postgres-pooler': 'error',
  'postgres-server': 'warning',
  'webhooks': 'warning',
  'audit-log': 'error',
  'store': 'error',
} as const satisfies Record<string, Severity>

type CheckName = keyof typeof CHECKS

export interface Issue {
  readonly message: string
  readonly command?: string | undefined
  /** How many things it is about, and the first of them. */
  readonly count?: number
  readonly first?: readonly string[]
}

export const issue = (message: string, command: string): Issue => ({ message, command })

/** Records the issues of a check: none when all is in order. */
export type Check = (name: CheckName, ...issues: readonly (Issue | false | undefined)[]) => void

/** The issue that all things of a kind are; `false` for none. */
export function findMany(what: string, names: readonly string[], command: string): Issue | false {
  const count = names.length
  const first = names.slice(0, 5)
  const more = count > first.length ? [`${formatCount(count - first.length)} more`] : []
  return count > 0 && { message: `${what}: ${joinList([...first, ...more])}.`, command, count, first }
}

export function checkIndexes(check: Check, all: readonly Migration[], present: readonly string[]): void {
  const sql = all.map((migration) => migration.sql).join('\n')
  const dropped = [...sql.matchAll(/^DROP INDEX (\w+)/gm)].map(([, name]) => name)
  const known = new Set([...present, ...dropped])
  const created = [...sql.matchAll(/^CREATE (?:UNIQUE )?INDEX (\w+)[^;]*;/gm)]
  const missing = created.filter(([, name]) => !known.has(name))
  const statements = missing.map(([statement]) => statement.replace(/\s+/g, ' ')).join(' ')
  check('indexes', findMany('Indexes that are missing', missing.map(([, name = '']) => name), statements))
}

/** @param skewMs By how much the clock of `name` is ahead of that of `other`. */
export function findSkew(name: string, other: string, skewMs: number, maxMs: number): Issue | false {
  const skew = `${Math.abs(skewMs)} ms ${skewMs > 0 ? 'ahead of' : 'behind'}`
  return Math.abs(skewMs) > maxMs &&
    issue(`The clock of ${name} is ${skew} that of ${other}.`, 'timedatectl set-ntp true')
}

/** @param ms How long a server may use outdated data. */
export function findStaleness(name: string, ms: number): Issue | false {
  const message = `${name} may accept a key for ${ms / 1_000} s after it is revoked.`
  return ms > 5_000 && issue(message, 'partner-api serve --max-staleness 1000 --stale-if-error 0')
}

/** Checks of this machine: its files, its disk and its environment. */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { openDatabase } from '../../adapters/stores/sqlite/database.ts'
import type { Io } from '../output/print.ts'
import { shellQuote } from '../output/text.ts'
import type { ServiceOptions } from '../service-options.ts'
import { exposedFiles } from '../store.ts'
import { type Checks, error, type Finding, findMany, findStaleness, warning } from './check.ts'

interface MachineContext {
  readonly env: Io['env']
  /** The options of `serve` in the environment and the configuration file. */
  readonly served: Pick<ServiceOptions, 'allowBrowsers' | 'limits' | 'maxStalenessMs' | 'staleIfErrorSeconds'>
  /** Files with keys. */
  readonly keyFiles: readonly string[]
}

export const MACHINE_CHECKS: Checks<MachineContext> = {
  'key-files': ({ keyFiles }) => findExposed(keyFiles),

  'certificate-checks'({ env }) {
    const { NODE_TLS_REJECT_UNAUTHORIZED: setting } = env
    return setting === '0' && error('Any certificate is accepted.', 'unset NODE_TLS_REJECT_UNAUTHORIZED')
  },

  'serve-options'({ served: { allowBrowsers, limits = {}, maxStalenessMs = 0, staleIfErrorSeconds = 0 } }) {
    const names = Object.entries(limits).filter(([, limit]) => limit.quota === 0).map(([name]) => name)
    const command = 'partner-api config show serve'
    return [
      ...findStaleness('serve', maxStalenessMs + staleIfErrorSeconds * 1_000),
      ...findMany({ severity: 'warning', what: 'Limits that serve turns off', names, command }),
      ...allowBrowsers ? [warning('serve answers browsers, where everybody can read a key.', command)] : [],
    ]
  },
}

function findExposed(files: readonly string[]): readonly Finding[] {
  const names = files.flatMap(exposedFiles)
  const command = `chmod 600 ${names.map(shellQuote).join(' ')}`
  return findMany({ severity: 'error', what: 'Files that other accounts can read', names, command })
}

const mebibyte = 1_048_576
/** By `statfs`: NFS, SMB, CIFS, SMB 2, AFS, Ceph and 9P. */
const networkFileSystems = [0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0xc36400, 0x01021997]

/** The context is the path of the store. */
export const SQLITE_CHECKS: Checks<string> = {
  'store-files': (file) => findExposed([file]),

  'store-folder'(file) {
    const folder = dirname(file)
    const { mode } = statSync(folder)
    // With the sticky bit, as in /tmp, others cannot replace files of this account.
    return process.platform !== 'win32' && (mode & 0o022) !== 0 && (mode & 0o1000) === 0 &&
      warning(`Other accounts can replace the files in ${folder}.`, `chmod go-w ${shellQuote(folder)}`)
  },

  'disk-space'(file) {
    const { bavail, bsize } = statfsSync(dirname(file))
    const free = Math.floor(bavail * bsize / mebibyte)
    const message = `The disk of the store has ${free} MiB left.`
    return free < 1_024 && warning(message, `df -h ${shellQuote(dirname(file))}`, { free_mib: free })
  },

  'network-file-system': (file) =>
    networkFileSystems.includes(statfsSync(file).type) && error(
      'The store is on a network file system, where the locks of SQLite are not reliable.',
      `partner-api store copy --from ${shellQuote(`sqlite:${file}`)} --to sqlite:/var/lib/partner-api.db`,
    ),

  'wal-size'(file) {
    const size = Math.ceil((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) / mebibyte)
    const message =
      `The write-ahead log has ${size} MiB: a process reads an old state of the store, or was killed.`
    return size > 64 && warning(message, `fuser -v ${shellQuote(file)}`, { wal_mib: size })
  },

  integrity(file) {
    const deadline = performance.now() + 10_000
    const command = `sqlite3 ${shellQuote(file)} 'PRAGMA integrity_check'`
    const database = openDatabase(file, { create: false, readOnly: true })
    try {
      const tables = database.statement<[string]>("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
      for (const [table] of tables) {
        if (performance.now() > deadline) {
          return { severity: 'skipped', message: '10 s were not enough to check all tables.', command }
        }
        const [found] = database.statement<[string]>(`PRAGMA quick_check('${table.replaceAll("'", "''")}')`)
          .get()!
        if (found !== 'ok') return error(`SQLite finds damage in the table ${table}: ${found}.`, command)
      }
      return undefined
    } finally {
      database.close()
    }
  },
}

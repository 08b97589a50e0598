import { randomBytes } from 'node:crypto'
import { appendFile, copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ReservedSql, Sql } from 'postgres'
import { provideBinaries } from './binaries.ts'
import { superuser } from './data-folder.ts'
import { createPrivateFolder } from './private-folder.ts'
import { type PostgresServer, runServer } from './server.ts'
import { giveAway } from './unprivileged.ts'
import { until } from './until.ts'

export interface StandbyOptions {
  /**
   * Whether the primary acknowledges a commit only after the standby has written it, too; default false. It then also
   * waits for a standby that is down, for ever.
   */
  readonly synchronous?: boolean
}

/**
 * Starts a hot standby of a running server, with the same options: it replicates the other and answers queries.
 *
 * @returns When it receives what is written there.
 */
export async function startStandby(primary: PostgresServer, options: StandbyOptions = {}) {
  const { user, password } = primary
  const name = `standby_${randomBytes(6).toString('hex')}`
  const folder = await createPrivateFolder('standby', !primary.options.durable)
  let server: PostgresServer
  try {
    const data = join(folder.path, 'data')
    await backUp(primary, name, data)
    const address = `host=${primary.host} port=${primary.port} user=${superuser} password=${password}`
    await writeFile(join(data, 'standby.signal'), '')
    // The last line of a setting applies. The promoted server waits for no standby.
    await appendFile(
      join(data, 'postgresql.auto.conf'),
      `\nprimary_conninfo = '${address} application_name=${name}'\nprimary_slot_name = '${name}'\n` +
        `synchronous_standby_names = ''\n`,
    )
    await giveAway(folder.path)
    const binaries = await provideBinaries()
    server = await runServer({ options: primary.options, binaries, folder, user, password })
  } catch (error) {
    await folder.remove()
    throw error
  }

  const follows = async (column: 'state' | 'sync_state', value: string): Promise<boolean> => {
    const { admin } = primary
    const [row] = await admin`select ${
      admin(column)
    } from pg_stat_replication where application_name = ${name}`
    return row?.[column] === value
  }
  try {
    await until(() => follows('state', 'streaming'), 'the standby to follow')
    if (options.synchronous) {
      await primary.admin.unsafe(`alter system set synchronous_standby_names = '${name}'`)
      await primary.admin`select pg_reload_conf()`
      await until(() => follows('sync_state', 'sync'), 'the primary to wait for its standby')
    }
  } catch (error) {
    await server.close()
    throw error
  }

  return {
    ...server,
    /** Resolves when it shows everything that the primary has committed before the call. */
    caughtUp: () => caughtUp(primary.admin, server.admin),
    /** Makes it a primary of its own, whatever has become of the other. */
    async promote(): Promise<void> {
      const [answer] = await server.admin`select pg_promote(true, 60) as done`
      if (!answer?.['done']) throw new Error(`The standby was not promoted:\n${server.log()}`)
    },
  }
}

/** Resolves when a standby shows everything that its primary has committed before the call. */
async function caughtUp(primary: Sql, standby: Sql): Promise<void> {
  const [row] = await primary`select pg_current_wal_lsn()::text as written`
  await until(async () => {
    const [answer] = await standby`
      select pg_last_wal_replay_lsn() >= ${row?.['written']}::pg_lsn as is_here`
    return answer?.['is_here']
  }, 'the standby to catch up')
}

/**
 * Copies the data of a running server. The slot keeps what it has written since for the standby.
 *
 * @see https://www.postgresql.org/docs/18/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP
 */
async function backUp(primary: PostgresServer, slot: string, data: string): Promise<void> {
  const session: ReservedSql = await primary.admin.reserve()
  try {
    await session`select pg_create_physical_replication_slot(${slot}, true)`
    await session`select pg_backup_start(${slot}, true)`
    try {
      await copyData(primary.dataFolder, data)
    } finally {
      const [end] = await session`select labelfile from pg_backup_stop(false)`
      await writeFile(join(data, 'backup_label'), end?.['labelfile'])
    }
  } finally {
    session.release()
  }
}

/** Folders whose files mean nothing to another server. */
const ownFolders = /^pg_(?:wal|replslot|dynshmem|notify|serial|snapshots|stat_tmp|subtrans)$|^pgsql_tmp/
const ownFiles = /^postmaster\.|^pg_internal\.init|^pgsql_tmp|^backup_label/

/** Files come and go meanwhile. */
async function copyData(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    if (entry.isDirectory()) {
      if (ownFolders.test(entry.name)) await mkdir(target, { mode: 0o700 })
      else await copyData(source, target)
    } else if (!ownFiles.test(entry.name)) {
      await copyFile(source, target).catch((error) => {
        if (error.code !== 'ENOENT') throw error
      })
    }
  }
}

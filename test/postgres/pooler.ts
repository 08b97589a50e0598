import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { freePort } from './free-port.ts'
import { createPrivateFolder, type PrivateFolder } from './private-folder.ts'
import { atPort, type PostgresServer } from './server.ts'
import { canEndWithUs, giveAway, runsAsRoot, spawnUnprivileged } from './unprivileged.ts'
import { within } from './until.ts'

export interface PoolerOptions {
  /** Default "transaction": each transaction may run on another of the server's connections. */
  readonly mode?: 'session' | 'transaction' | 'statement'
  /** The most connections to each database, default 20. */
  readonly poolSize?: number
  /** Parameters of the startup message that it drops, as a hosted pooler may; by default it refuses them. */
  readonly ignoredParameters?: readonly string[]
}

/** A pgbouncer process. */
export interface Pooler {
  readonly port: number
  /** The same database, for the same user, through the pooler. */
  url(databaseUrl: string): string
  /** What it wrote to its log. */
  log(): string
  /** Ends it with SIGKILL. */
  kill(): Promise<void>
  /** Ends it, and deletes its folder. It may be killed already. */
  close(): Promise<void>
}

/** @returns Why no pooler can be started on this machine; undefined where one can. */
export function hasPooler(): string | undefined {
  if (runsAsRoot && !canEndWithUs) return 'pgbouncer does not run as root, and there is no setpriv'
  return findPooler() === undefined ? 'pgbouncer is not installed' : undefined
}

/** Starts a pooler in front of all databases of a server. It ends with this process, however that ends. */
export async function startPooler(server: PostgresServer, options: PoolerOptions = {}): Promise<Pooler> {
  const program = findPooler()
  if (program === undefined) throw new Error(hasPooler())
  const folder = await createPrivateFolder('pooler', false)
  try {
    return await runPooler({ program, folder, server, options }, 5)
  } catch (error) {
    await folder.remove()
    throw error
  }
}

interface Plan {
  readonly program: string
  readonly folder: PrivateFolder
  readonly server: PostgresServer
  readonly options: PoolerOptions
}

async function runPooler(plan: Plan, tries: number): Promise<Pooler> {
  const folder = plan.folder.path
  const port = await freePort()
  const [settings, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')]
  await writeFile(settings, settingsOf(plan, port, users))
  // In the clear, for it has to log in with them.
  await writeFile(users, `"${plan.server.user}" "${plan.server.password}"\n`, { mode: 0o600 })
  await giveAway(folder)

  const child = spawnUnprivileged([plan.program, settings], folder, 'KILL')
  await once(child, 'spawn')
  const exit = once(child, 'exit')
  const started = Promise.withResolvers<void>()
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-64 * 1024)
    if (log.includes('process up')) started.resolve()
  })
  child.once('close', () => started.reject(new Error(`pgbouncer did not start:\n${log}`)))

  async function kill(): Promise<void> {
    child.kill('SIGKILL')
    await exit
  }

  try {
    await within(started.promise, 'pgbouncer to start')
  } catch (error) {
    await kill()
    // Another program took the port.
    if (tries === 1 || !log.includes('Address already in use')) throw error
    return await runPooler(plan, tries - 1)
  }

  return {
    port,
    url: (databaseUrl) => atPort(databaseUrl, port),
    log: () => log,
    kill,
    async close() {
      await kill()
      await plan.folder.remove()
    },
  }
}

function settingsOf({ server, options }: Plan, port: number, users: string): string {
  // After a failed log-in it would refuse clients for 15 seconds: too long for a test that starts a server again.
  return `
[databases]
* = host=${server.host} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = ${options.mode ?? 'transaction'}
default_pool_size = ${options.poolSize ?? 20}
max_client_conn = 500
server_login_retry = 0.1
ignore_startup_parameters = ${(options.ignoredParameters ?? []).join(',')}
`
}

/** Debian keeps it where only root looks. */
function findPooler(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, 'pgbouncer')).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

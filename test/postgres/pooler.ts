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

/** @returns Why no pooler can be started on this machine; undefined where one can. */
export function hasPooler(): string | undefined {
  if (runsAsRoot && !canEndWithUs) return 'pgbouncer does not run as root, and there is no setpriv'
  return findPooler() === undefined ? 'pgbouncer is not installed' : undefined
}

/**
 * Starts a pgbouncer for all databases of a server, where each transaction may run on another of the server's connections. It
 * ends with this process, however that ends.
 *
 * @param ignoredParameters Parameters of the startup message that it drops, as a hosted pooler may, instead of refusing them.
 */
export async function startPooler(
  server: PostgresServer,
  ignoredParameters: readonly string[] = [],
  tries = 5,
): Promise<Awaited<ReturnType<typeof runPooler>>> {
  const program = findPooler()
  if (program === undefined) throw new Error(hasPooler())
  const folder = await createPrivateFolder('pooler', false)
  try {
    return await runPooler(program, folder, server, ignoredParameters)
  } catch (error) {
    await folder.remove()
    // Another program took the port.
    if (tries === 1 || !String(error).includes('Address already in use')) throw error
    return await startPooler(server, ignoredParameters, tries - 1)
  }
}

async function runPooler(
  program: string,
  folder: PrivateFolder,
  { host, port: target, user, password }: PostgresServer,
  ignoredParameters: readonly string[],
) {
  const port = await freePort()
  const settings = join(folder.path, 'pgbouncer.ini')
  const users = join(folder.path, 'users.txt')
  // After a failed log-in it would refuse clients for 15 seconds: too long for a test that restarts a server.
  await writeFile(
    settings,
    `
[databases]
* = host=${host} port=${target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 0.1
ignore_startup_parameters = ${ignoredParameters.join(',')}
`,
  )
  // In the clear, for it has to log in with them.
  await writeFile(users, `"${user}" "${password}"\n`, { mode: 0o600 })
  await giveAway(folder.path)

  const child = spawnUnprivileged([program, settings], folder.path, 'KILL')
  await once(child, 'spawn')
  const exit = once(child, 'exit')
  const started = Promise.withResolvers<void>()
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-64 * 1024)
    if (log.includes('process up')) started.resolve()
  })
  child.once('close', () => started.reject(new Error(`pgbouncer did not start:\n${log}`)))
  const kill = async () => {
    child.kill('SIGKILL')
    await exit
  }
  try {
    await within(started.promise, 'pgbouncer to start')
  } catch (error) {
    await kill()
    throw error
  }
  return {
    port,
    /** The same database, for the same user, through the pooler. */
    url: (databaseUrl: string) => atPort(databaseUrl, port),
    async close(): Promise<void> {
      await kill()
      await folder.remove()
    },
  }
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

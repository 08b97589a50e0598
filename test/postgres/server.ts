import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import process from 'node:process'
import postgres, { type Sql } from 'postgres'
import { type Binaries, provideBinaries } from './binaries.ts'
import { createDataFolder, superuser } from './data-folder.ts'
import { freePort } from './free-port.ts'
import { type Postmaster, startPostmaster } from './postmaster.ts'
import { createPrivateFolder, type PrivateFolder } from './private-folder.ts'

/** For stores in tests that are not about how soon a look-up is given up: a busy machine pauses for a second. */
export const PATIENT = { lookUpTimeoutMs: 10_000 } as const

export interface ServerOptions {
  /**
   * Whether what it has acknowledged outlives the machine, on a real disk and at a disk's price. Default false: it
   * outlives `kill()`.
   */
  readonly durable?: boolean
  /** Further settings by name, as for `postgres -c`: no `ALTER SYSTEM` changes these. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A real server of a test's own. */
export type PostgresServer = Awaited<ReturnType<typeof runServer>>

/** Databases of a server, which other programs may use, too. */
export type Databases = ReturnType<typeof connectTo>

/** Where a server is. */
export interface Address {
  /** Of its Unix socket. */
  readonly folder: string
  readonly port: number
  readonly user: string
  readonly password: string
}

/** What a server is made of, before it runs. */
export interface ServerPlan {
  readonly options: ServerOptions
  readonly binaries: Binaries
  /** Has the data in "data". The server deletes it in the end. */
  readonly folder: PrivateFolder
  readonly user: string
  readonly password: string
}

const host = '127.0.0.1'
const fast = { fsync: 'off', full_page_writes: 'off' }

/** Starts a new server. It ends with this process, however that ends. `hasServer()` says where there is none. */
export async function startServer(options: ServerOptions = {}): Promise<PostgresServer> {
  const folder = await createPrivateFolder('postgres', !options.durable)
  try {
    const binaries = await provideBinaries()
    await createDataFolder(binaries, join(folder.path, 'data'))
    const password = randomBytes(18).toString('base64url')
    const server = await runServer({ options, binaries, folder, user: 'partner_api', password })
    await server.admin.unsafe(
      `alter role ${superuser} password '${password}'; create role partner_api login password '${password}'`,
    )
    return server
  } catch (error) {
    await folder.remove()
    throw error
  }
}

/** The variable with the address of the server that `run.ts` starts for all files, as JSON. */
export const SHARED_SERVER = 'TEST_POSTGRES'

/** Uses the server of all files if there is one, and otherwise starts one. Databases are dropped in the end. */
export async function useServer(): Promise<Databases> {
  const shared = process.env[SHARED_SERVER]
  return shared === undefined ? await startServer() : connectTo(JSON.parse(shared))
}

function connectTo({ folder, port, user, password }: Address) {
  const created: string[] = []
  /** The superuser's one connection to the database "postgres", opened on first use. */
  const admin: Sql = postgres({
    path: join(folder, `.s.PGSQL.${port}`),
    user: superuser,
    database: 'postgres',
    max: 1,
    onnotice: () => {},
  })
  const address = (name: string) => (database: string) =>
    `postgres://${name}:${password}@${host}:${port}/${database}`

  return {
    host,
    port,
    /** A role that may log in and nothing else. It owns the databases that are created here. */
    user,
    /** The user's and the superuser's. */
    password,
    admin,
    /** The address of a database for the user. */
    url: address(user),
    /** The address of a database for the superuser. */
    adminUrl: address(superuser),
    /** @returns The address of a new, empty database for the user. */
    async createDatabase(): Promise<string> {
      // Random, because a promoted standby has the primary's, too.
      const name = `test_${randomBytes(6).toString('hex')}`
      created.push(name)
      await admin`create database ${admin(name)} owner ${admin(user)} template template0`
      return address(user)(name)
    },
    /** Drops the database at this URL, even with open connections. */
    async dropDatabase(url: string): Promise<void> {
      await admin`drop database if exists ${admin(new URL(url).pathname.slice(1))} with (force)`
    },
    async close(): Promise<void> {
      for (const name of created) await admin`drop database if exists ${admin(name)} with (force)`
      await admin.end({ timeout: 0 })
    },
  }
}

/** Starts a server on existing data. */
export async function runServer(plan: ServerPlan) {
  const { options, folder, user, password } = plan
  const data = await startSomewhere(plan, 5)
  const { port } = data
  let { postmaster } = data
  const address: Address = { folder: folder.path, port, user, password }
  const databases = connectTo(address)

  return {
    ...databases,
    address,
    options,
    dataFolder: join(folder.path, 'data'),
    /** The end of its log since the last start. */
    log: () => postmaster.log(),
    /** Ends all of its processes with SIGKILL, and resolves when none is left. */
    kill: () => postmaster.kill(),
    /** Suspends all of its processes, as in a server that hangs. New connections get no response, either. */
    pause: () => postmaster.pause(),
    resume: () => postmaster.resume(),
    /** Starts it on the same port and data; a running one is stopped before. */
    async restart(): Promise<void> {
      await postmaster.stop()
      postmaster = await startPostmaster(commandOf(plan, port), folder.path)
    },
    /** Ends it, and deletes its folder. It may have been killed. */
    async close(): Promise<void> {
      await postmaster.abandon()
      await databases.admin.end({ timeout: 0 })
      await folder.remove()
    },
  }
}

/** The same database, at another port of the loopback. */
export function atPort(databaseUrl: string, port: number): string {
  const url = new URL(databaseUrl)
  url.port = String(port)
  return url.href
}

async function startSomewhere(
  plan: ServerPlan,
  tries: number,
): Promise<{ port: number; postmaster: Postmaster }> {
  const port = await freePort()
  try {
    return { port, postmaster: await startPostmaster(commandOf(plan, port), plan.folder.path) }
  } catch (error) {
    // Another program was faster.
    if (tries > 1 && String(error).includes('Address already in use')) {
      return await startSomewhere(plan, tries - 1)
    }
    throw error
  }
}

function commandOf({ options, binaries, folder }: ServerPlan, port: number): string[] {
  const settings = {
    port: String(port),
    listen_addresses: host,
    unix_socket_directories: folder.path,
    ...(options.durable ? {} : fast),
    ...options.settings,
  }
  return [
    binaries.postgres,
    '-D',
    join(folder.path, 'data'),
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}

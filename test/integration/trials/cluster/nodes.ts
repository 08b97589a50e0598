/** The nodes of a Patroni cluster, with the configuration of the examples. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { gone, signal } from '../../../postgres/processes.ts'
import { until as untilAtOnce } from '../../../postgres/until.ts'
import { home, type Machines } from './machines.ts'

export const NODES = ['db1', 'db2', 'db3'] as const
export type NodeName = (typeof NODES)[number]

/** A member as Patroni reports it. */
interface Member {
  readonly name: NodeName
  readonly role: string
  readonly state: string
  readonly timeline?: number
  readonly lag?: number | string
}

const examples = new URL('../../../../examples/deploy/', import.meta.url)
const run = promisify(execFile)
export const password: string = randomBytes(18).toString('base64url')
/** Milliseconds for what a slow machine may take minutes for. */
export const PATIENCE_MS = 180_000

/** Asks ten times a second at most, so that nodes have other things to do. */
function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  return untilAtOnce(() => sleep(100).then(condition), what, PATIENCE_MS)
}

export type Nodes = Awaited<ReturnType<typeof startNodes>>

/** Starts etcd and Patroni on all nodes. @returns When there is a leader with two standbys, and the database. */
export async function startNodes(machines: Machines, synchronous: boolean) {
  const config = join(home, 'patroni.yml')
  copyFileSync(new URL('patroni.yml', examples), config)
  const secrets = Object.fromEntries(
    ['SUPERUSER_PASSWORD', 'REPLICATION_PASSWORD', 'REWIND_PASSWORD', 'RESTAPI_PASSWORD']
      .map((name) => [`PATRONI_${name}`, password]),
  )
  const settings = { ...secrets, PATRONI_RESTAPI_USERNAME: 'patroni' }
  const etcd = new Map<NodeName, ReturnType<Machines['start']>>()
  const patroni = new Map<NodeName, ReturnType<Machines['start']>>()

  function startEtcd(name: NodeName): void {
    const lines = readFileSync(new URL('etcd.env', examples), 'utf8').match(/^ETCD_.*$/gm)!
    const env = Object.fromEntries(lines.map((line) => {
      const [, variable = '', value = ''] = /^(\w+)=(.*)$/.exec(line)!
      return [variable, variable === 'ETCD_INITIAL_CLUSTER' ? value : value.replace('db1', name)]
    }))
    etcd.set(name, machines.start(name, 'etcd', ['etcd'], { '/var/lib/etcd': 'etcd' }, env))
  }

  function startPatroni(name: NodeName): void {
    const env = {
      ...settings,
      PATRONI_NAME: name,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${name}.example:8008`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${name}.example:5432`,
    }
    const folders = { '/var/lib/postgresql': 'postgresql' }
    patroni.set(name, machines.start(name, 'patroni', ['patroni', config], folders, env))
  }

  async function kill(processes: typeof etcd, name: NodeName): Promise<void> {
    const { pid, exited } = processes.get(name)!
    signal(pid, 'SIGKILL')
    await exited
  }

  /** @returns Undefined while it does not answer. */
  async function ask<T>(name: NodeName, path: string): Promise<T | undefined> {
    try {
      const response = await fetch(`http://${name}.example:8008${path}`, {
        signal: AbortSignal.timeout(5_000),
      })
      return await response.json() as T
    } catch {
      return undefined
    }
  }

  /** Whether Patroni says of a node that writes go there. */
  async function takesWrites(name: NodeName): Promise<boolean> {
    try {
      const init = { method: 'OPTIONS', signal: AbortSignal.timeout(5_000) }
      return (await fetch(`http://${name}.example:8008/primary`, init)).status === 200
    } catch {
      return false
    }
  }

  /** Resolves with the one node of these that writes go to. */
  async function leader(among: readonly NodeName[] = NODES): Promise<NodeName> {
    let found: NodeName | undefined
    await until(
      async () => {
        const answers = await Promise.all(among.map(takesWrites))
        found = answers.filter(Boolean).length === 1 ? among[answers.indexOf(true)] : undefined
        return found !== undefined
      },
      `a leader among ${among.join(', ')}`,
    )
    return found!
  }

  /** Resolves when all nodes run, on one timeline and without lag. @returns The leader and its synchronous standby. */
  async function healthy(): Promise<{ leader: NodeName; standby: NodeName; other: NodeName }> {
    let last = ''
    const found = { leader: NODES[0] as NodeName, standby: NODES[0] as NodeName, other: NODES[0] as NodeName }
    await until(
      async () => {
        const views = await Promise.all(
          NODES.map((name) => ask<{ members: readonly Member[] }>(name, '/cluster')),
        )
        last = JSON.stringify(views[0]?.members)
        const isWell = views.every((view) =>
          view?.members.length === NODES.length &&
          view.members.every(({ state, lag = 0 }) => /^(?:running|streaming)$/.test(state) && lag === 0) &&
          new Set(view.members.map(({ timeline }) => timeline)).size === 1
        )
        const members = views[0]?.members ?? []
        const withRole = (role: string) => members.find((member) => member.role === role)?.name
        const leader = withRole('leader')
        const standby = synchronous ? withRole('sync_standby') : withRole('replica')
        if (!isWell || !leader || !standby || !await takesWrites(leader)) return false
        Object.assign(found, {
          leader,
          standby,
          other: NODES.find((name) => name !== leader && name !== standby)!,
        })
        return true
      },
      `three nodes in order`,
    ).catch((error) => {
      throw new Error(`${error.message} ${last}`)
    })
    return found
  }

  /** Runs a statement as the superuser. */
  async function query(name: NodeName, statement: string): Promise<readonly Record<string, boolean>[]> {
    const sql = postgres({
      host: `${name}.example`,
      database: 'postgres',
      username: 'postgres',
      password,
      max: 1,
      connect_timeout: 5,
      // A connection that is lost while the driver fetches types would end the process.
      fetch_types: false,
    })
    try {
      return await sql.unsafe(statement)
    } finally {
      await sql.end({ timeout: 0 })
    }
  }

  const patronictl = (...args: readonly string[]) =>
    run('patronictl', ['-c', config, ...args], {
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', ...settings },
    })

  for (const name of NODES) {
    startEtcd(name)
    startPatroni(name)
  }
  const first = await leader()
  if (!synchronous) await patronictl('edit-config', '--set', 'synchronous_mode=false', '--force')
  await healthy()
  await query(first, `create role partner_api login password '${password}'`)
  await query(first, 'create database partner_api owner partner_api')

  return {
    leader,
    healthy,

    /** Resolves when the PostgreSQL of a node is not a primary any more. */
    deposed: (name: NodeName) =>
      until(
        () =>
          query(name, 'select pg_is_in_recovery() as is_standby').then(([row]) => row!['is_standby']!, () =>
            true),
        `${name} to take no writes`,
      ),

    /** Resolves when this node is the synchronous standby. */
    standby: (name: NodeName) =>
      until(
        async () => (await ask<{ sync_standby?: boolean }>(name, '/patroni'))?.sync_standby === true,
        `${name} to be the synchronous standby`,
      ),

    patronictl,
    startEtcd,
    startPatroni,
    killEtcd: (name: NodeName) => kill(etcd, name),
    killPatroni: (name: NodeName) => kill(patroni, name),

    /** Kills Postgres on a node, all of its processes. */
    async killPostgres(name: NodeName): Promise<void> {
      const file = join(home, name, 'postgresql/15/partner-api/postmaster.pid')
      const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
      // The other processes end when the postmaster has.
      signal(pid, 'SIGKILL')
      await gone([pid])
    },
  }
}

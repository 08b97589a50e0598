/**
 * Runs servers on a cluster of Patroni, etcd and HAProxy, and breaks it under load:
 * `node test/integration/trials/cluster.ts [haproxy|hosts|asynchronous] [FAULT…]`. Needs root on Linux, and
 * the Debian packages patroni, python3-etcd, etcd-server, postgresql-15, haproxy and iproute2. The configuration is that
 * of examples/deploy.
 *
 * Three machines have PostgreSQL, Patroni and etcd, two have HAProxy and the program. Each is a network namespace. Clients
 * reach HAProxy on both; the program reaches the leader through HAProxy on its machine, or by a URL with three hosts. No signup that was acknowledged may be lost or doubled, and no key may be accepted
 * once `keys revoke --wait` has returned.
 *
 * `asynchronous` runs without `synchronous_mode`, and is expected to lose signups.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../../core/ports/store.ts'
import { missingPackages } from '../../parts.ts'
import { programOn } from '../../support/cli-program.ts'
import { createPartner } from '../../support/partner.ts'
import { describeLanes, startClusterLoad } from './cluster/load.ts'
import { createMachines, isInside, type Machines, runInNamespaces } from './cluster/machines.ts'
import { type NodeName, NODES, type Nodes, password, startNodes } from './cluster/nodes.ts'
import { type RouteName, ROUTES, startProxies, startServers, WEBS } from './cluster/servers.ts'
import { checkRevoked, checkSignups } from './load.ts'
import { check, checkFailures, endWithin, ms, openStore } from './setup.ts'

interface Scene {
  readonly nodes: Nodes
  readonly machines: Machines
  readonly leader: NodeName
  readonly standby: NodeName
  readonly other: NodeName
}

interface Fault {
  readonly title: string
  /** Options of `serve`. */
  readonly args?: readonly string[]
  /** Resolves when its consequences are there. @returns How to repair it. */
  strike(scene: Scene): Promise<() => void>
  /** Whether every client is served before it is repaired; default true. */
  readonly servesMeanwhile?: boolean
  /** A route for which nothing is promised. */
  readonly except?: RouteName
}

/** Commands and paths that a run needs, with their Debian packages. */
const NEEDS = {
  '/usr/lib/postgresql/15': 'postgresql-15',
  '/usr/lib/python3/dist-packages/etcd': 'python3-etcd',
  etcd: 'etcd-server',
  haproxy: 'haproxy',
  ip: 'iproute2',
  patroni: 'patroni',
}

/** How long a fault goes on after its consequences, and the load after the repair. */
const loadMs = 3_000
/** Longer than the lock of a leader lasts. */
const outageMs = 40_000

const FAULTS: Readonly<Record<string, Fault>> = {
  'switch-over': {
    title: 'A planned switch-over',
    async strike({ nodes, leader, standby }) {
      await nodes.patronictl(
        'switchover',
        'partner-api',
        '--leader',
        leader,
        '--candidate',
        standby,
        '--force',
      )
      await nodes.leader([standby])
      return () => {}
    },
  },
  kill: { title: 'PostgreSQL and Patroni of the leader are killed', strike: killLeader },
  cut: {
    title: 'The leader is cut off from the other nodes, but not from the servers',
    strike: (scene) => cutLeader(scene, [], []),
  },
  'cut-with-server': {
    title:
      'The leader and one server are cut off from the other nodes and the other server, but not from clients',
    strike: (scene) => cutLeader(scene, ['web1'], ['web2']),
    servesMeanwhile: false,
  },
  'cut-standby': {
    title: 'The synchronous standby is cut off from the other nodes',
    async strike({ nodes, machines, leader, standby, other }) {
      machines.cut([standby], [leader, other])
      await nodes.standby(other)
      return machines.restore
    },
  },
  etcd: {
    title: `etcd loses two of three members for ${ms(outageMs)}`,
    async strike({ nodes, standby, other }) {
      await Promise.all([nodes.killEtcd(standby), nodes.killEtcd(other)])
      await sleep(outageMs)
      return () => [standby, other].forEach(nodes.startEtcd)
    },
  },
  patroni: {
    title: 'Patroni of the leader is killed, and its PostgreSQL goes on',
    async strike({ nodes, leader, standby, other }) {
      await nodes.killPatroni(leader)
      await nodes.leader([standby, other])
      return () => nodes.startPatroni(leader)
    },
    // With a list of hosts, servers stay with the old leader: it still takes writes, and they cannot know.
    except: 'hosts',
  },
  stale: {
    title: 'PostgreSQL and Patroni of the leader are killed; servers have --stale-if-error 60',
    args: ['--stale-if-error', '60'],
    strike: killLeader,
  },
}

async function killLeader({ nodes, leader, standby, other }: Scene): Promise<() => void> {
  await nodes.killPatroni(leader)
  await nodes.killPostgres(leader)
  await nodes.leader([standby, other])
  return () => nodes.startPatroni(leader)
}

/** @param here The servers on the leader's side, and only there. */
async function cutLeader(
  { nodes, machines, leader, standby, other }: Scene,
  here: readonly string[],
  there: readonly string[],
): Promise<() => void> {
  const cutAt = performance.now()
  machines.cut([leader, ...here], [standby, other, ...there])
  const deposed = nodes.deposed(leader).then(() => performance.now())
  await nodes.leader([standby, other])
  const ledAt = performance.now()
  const gapMs = ledAt - await deposed
  console.log(`  the old leader was no primary any more ${ms(ledAt - gapMs - cutAt)} after the cut`)
  check(`there is no second primary before that (${ms(gapMs)} later)`, gapMs >= 0)
  return machines.restore
}

const [mode = '', ...chosen] = process.argv.slice(2)
const names = chosen.length > 0 ? chosen : Object.keys(FAULTS)
const routes = mode === 'asynchronous' ? ['haproxy'] : mode === '' ? Object.keys(ROUTES) : [mode]
let loads = 0
const unknown = [...routes.filter((name) => !(name in ROUTES)), ...names.filter((name) => !(name in FAULTS))]

const refusal = findRefusal()

if (refusal) {
  console.error(refusal)
  process.exitCode = 2
} else if (isInside) await run()
else await runInNamespaces()

function findRefusal(): string | undefined {
  if (unknown.length > 0) return `Unknown: ${unknown.join(', ')}`
  if (process.getuid?.() !== 0) return 'Network namespaces need root on Linux.'
  const missing = missingPackages(NEEDS)
  return missing.length > 0 ? `Install ${missing.join(' ')} first.` : undefined
}

async function run(): Promise<void> {
  endWithin(120 + routes.length * names.length * 600)
  process.env['PGPASSWORD'] = password
  const machines = createMachines([...NODES, ...WEBS])
  const nodes = await startNodes(machines, mode !== 'asynchronous')
  startProxies(machines)
  await nodes.healthy()
  let key: string | undefined
  const acknowledged: string[] = []
  for (const route of routes as RouteName[]) {
    const store = await openStore(ROUTES[route])
    try {
      key ??= await fill(store, ROUTES[route])
      for (const name of names) {
        if (chosen.length === 0 && FAULTS[name]!.except === route) continue
        console.log(`${FAULTS[name]!.title} (${route}):`)
        await strike(FAULTS[name]!, { machines, nodes, store, route, key, acknowledged })
      }
    } finally {
      await store.close()
    }
  }
  // What still runs ends with this process.
  process.exit()
}

/** Creates the partner with its key, and the content, some of which is for another partner. */
async function fill(store: Store, url: string): Promise<string> {
  const { run } = programOn(url)
  const imports = ['industries', 'plans', 'profiles']
    .map((kind) => ['content', 'import', kind, `fixtures/content/${kind}.jsonl`])
  for (const args of [['partners', 'create', 'demo', '--name', 'Demo'], ...imports]) {
    const { code, stderr } = await run(...args)
    if (code !== 0) throw new Error(stderr)
  }
  return (await (await createPartner(store)).issue()).text
}

async function strike(
  fault: Fault,
  { machines, nodes, store, route, key, acknowledged }: {
    readonly machines: Machines
    readonly nodes: Nodes
    readonly store: Store
    readonly route: RouteName
    readonly key: string
    /** The ids of all signups so far. */
    readonly acknowledged: string[]
  },
): Promise<void> {
  const roles = await nodes.healthy()
  const servers = await startServers(machines, route, fault.args ?? [])
  const load = await startClusterLoad(servers.clients, { store, url: ROUTES[route], key, number: loads++ })
  await sleep(loadMs)

  const struckAt = performance.now()
  const repair = await fault.strike({ nodes, machines, ...roles })
  const struckMs = performance.now() - struckAt
  const isServing = fault.servesMeanwhile !== false && fault.except !== route
  if (isServing) await load.served(performance.now())
  await sleep(isServing ? loadMs : outageMs)
  const repairedAt = performance.now()
  repair()
  const { leader, standby } = await nodes.healthy()
  const rejoinedMs = performance.now() - repairedAt
  await load.served(performance.now())
  await sleep(loadMs)
  await load.stop()

  console.log(
    `  ${roles.leader} led, ${leader} leads now with standby ${standby}: after ${
      ms(struckMs)
    }; all in order ${ms(rejoinedMs)} after the repair`,
  )
  describeLanes(load.lanes, struckAt)
  const { revoked, accepted, lost } = load.revoking
  const slowest = Math.max(...revoked.map(({ tookMs }) => tookMs))
  const last = Math.max(-Infinity, ...accepted.map(({ afterMs }) => afterMs))
  console.log(
    `  ${revoked.length} keys revoked, the slowest receipt took ${
      ms(slowest)
    }; the last request that a revoked key was accepted with came ${ms(last)} after its receipt`,
  )
  const signups = load.acknowledged()
  acknowledged.push(...signups.map(({ id }) => id))
  await checkSignups(store, acknowledged, load.repeated())
  check(`no key is accepted after its receipt (${accepted.length})`, accepted.length === 0)
  check(`no key that was issued is lost (${lost.length})`, lost.length === 0)
  await checkRevoked(store, load.revoking)
  if (isServing) checkFailures(servers.clients)
  else {
    // Requests on the way to a machine that is cut off get no answer.
    const wrong = servers.clients.flatMap(({ failures }) =>
      failures
    ).filter(({ status }) => status > 0).length
    check(`no request gets 500 (${wrong})`, wrong === 0)
  }
  await servers.stop()
}

/** Machines of a cluster: network namespaces that a router joins, within namespaces that end with the trial. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { createPrivateFolder } from '../../../postgres/private-folder.ts'

const FOLDER = 'PARTNER_API_TRIAL_FOLDER'

/** Whether this process runs in the namespaces. */
export const isInside: boolean = process.env[FOLDER] !== undefined

/** The folder of the trial there. */
export const home = '/run/trial'

/**
 * Runs this program again in network, mount and process namespaces of its own, and ends as it does. Whatever it starts
 * ends with it, and it with this process.
 */
export async function runInNamespaces(): Promise<void> {
  const { path, remove } = await createPrivateFolder('cluster', true)
  // The shell waits for processes that have lost their parent.
  const child = spawn('setpriv', [
    '--pdeathsig=KILL',
    'unshare',
    '--net',
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
    'sh',
    '-c',
    '"$@" & wait $!',
    'sh',
    process.execPath,
    ...process.argv.slice(1),
  ], { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, [FOLDER]: path } })
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => child.kill('SIGKILL'))
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
  await remove()
}

/** The network between the machines, each with its name and a subnet of its own. */
export type Machines = ReturnType<typeof createMachines>

/** Creates the machines `NAME.example`. This process is on none of them, and reaches all. */
export function createMachines(names: readonly string[]) {
  const addresses = new Map(names.map((name, index) => [name, `10.77.${index + 1}.2`]))
  sh(PREPARE, process.env[FOLDER]!)
  ip('link set lo up')
  const hosts = Array.from(addresses, ([name, address]) => `${address} ${name}.example`)
  writeFileSync(join(home, 'hosts'), ['127.0.0.1 localhost', ...hosts, ''].join('\n'), { mode: 0o644 })
  sh('mount --bind "$0" /etc/hosts', join(home, 'hosts'))
  // Whatever this machine has, no name server answers: nothing may need one.
  writeFileSync(join(home, 'resolv.conf'), 'nameserver 10.77.0.1\n', { mode: 0o644 })
  sh('[ ! -e /etc/resolv.conf ] || mount --bind "$0" /etc/resolv.conf', join(home, 'resolv.conf'))
  for (const [name, address] of addresses) {
    const gateway = address.replace(/2$/, '1')
    ip(`netns add ${name}`)
    ip(`link add ${name} type veth peer name eth0 netns ${name}`)
    ip(`addr add ${gateway}/24 dev ${name}`)
    ip(`link set ${name} up`)
    ip(`-n ${name} addr add ${address}/24 dev eth0`)
    ip(`-n ${name} link set lo up`)
    ip(`-n ${name} link set eth0 up`)
    ip(`-n ${name} route add default via ${gateway}`)
    mkdirSync(join(home, name))
  }
  const on = (name: string, command: readonly string[]) => ['ip', 'netns', 'exec', name, ...command]
  let rules = 0

  return {
    /** The command that runs another on a machine. */
    on,

    /**
     * Starts an unprivileged program, with folders of its own. It logs into one of them.
     *
     * @param name The machine; undefined for none of them.
     * @param folders The names of folders on its disk, by where the program looks for them.
     */
    start(
      name: string | undefined,
      program: string,
      command: readonly string[],
      folders: Readonly<Record<string, string>>,
      env: Readonly<Record<string, string>>,
    ) {
      const disk = join(home, name ?? '')
      const mounts = Object.entries(folders).flatMap(([path, at]) => [join(disk, at), path])
      const log = openSync(join(disk, `${program}.log`), 'a')
      const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--', ...command]
      const [file = '', ...args] = name === undefined
        ? unprivileged
        : on(name, ['sh', '-ec', MOUNT, 'sh', String(mounts.length / 2), ...mounts, ...unprivileged])
      const child = spawn(file, args, {
        cwd: '/',
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', HOME: '/', ...env },
        stdio: ['ignore', log, log],
      })
      return { pid: child.pid!, exited: once(child, 'exit') }
    },

    /** Drops every packet between machines of different groups. */
    cut(...groups: readonly (readonly string[])[]): void {
      for (const from of groups) {
        for (const to of groups.filter((group) => group !== from).flat()) {
          for (const one of from) {
            ip(`rule add pref ${100 + rules++} from ${addresses.get(one)} to ${addresses.get(to)} blackhole`)
          }
        }
      }
    },

    restore(): void {
      while (rules > 0) ip(`rule del pref ${100 + --rules}`)
    },
  }
}

/** What a killed Postgres leaves in /dev/shm goes with the trial. */
const PREPARE = `
  mount -t tmpfs tmpfs /run
  mkdir /run/postgresql ${home}
  mount --bind "$0" ${home}
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  echo 1 > /proc/sys/net/ipv4/ip_forward`

/** Mounts as many folders as the first argument says, then runs the rest. */
const MOUNT = `
  mount -t tmpfs -o mode=1777 tmpfs /run/postgresql
  count=$1; shift
  while [ "$count" -gt 0 ]; do
    mkdir -p "$1"; chown 65534:65534 "$1"; chmod 700 "$1"
    mount --bind "$1" "$2"
    shift 2; count=$((count - 1))
  done
  exec "$@"`

function ip(command: string): void {
  execFileSync('ip', command.split(' '), { stdio: ['ignore', 'ignore', 'inherit'] })
}

function sh(script: string, ...args: readonly string[]): void {
  execFileSync('sh', ['-ec', script, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}

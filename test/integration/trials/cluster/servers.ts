/** Two machines that run HAProxy, with the configuration of the examples, and the program. */
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { MAIN, startServing, stopServing } from '../../../support/cli-program.ts'
import { until } from '../../../postgres/until.ts'
import { createClient, NO_LIMITS } from '../setup.ts'
import { home, type Machines } from './machines.ts'
import { NODES, password } from './nodes.ts'

export const WEBS = ['web1', 'web2'] as const

/** How servers reach the database. */
export type RouteName = 'haproxy' | 'hosts'

/** As docs/cluster.md has it. HAProxy takes 4 s to notice a server that is about to stop. */
const SERVE = '--host 0.0.0.0 --port 8787 --trust-proxies 1 --metrics 0.0.0.0:9464 --drain-delay 5'.split(' ')

/** The passwords are in `PGPASSWORD`. */
export const ROUTES: Readonly<Record<RouteName, string>> = {
  haproxy: 'postgres://partner_api@127.0.0.1:5432/partner_api',
  hosts: `postgres://partner_api@${
    NODES.map((name) => `${name}.example`).join()
  }/partner_api?target_session_attrs=read-write`,
}

/** Starts HAProxy on both machines and, for the operator, here. */
export function startProxies(machines: Machines): void {
  const config = join(home, 'haproxy.cfg')
  copyFileSync(new URL('../../../../examples/deploy/haproxy.cfg', import.meta.url), config)
  for (const name of [...WEBS, undefined]) {
    machines.start(name, 'haproxy', ['haproxy', '-db', '-f', config], {}, {})
  }
}

/** @param args Options of `serve`. @returns When both machines pass requests on. */
export async function startServers(machines: Machines, route: RouteName, args: readonly string[]) {
  const all = await Promise.all(WEBS.map((name) =>
    startServing(
      ['serve', ...SERVE, '--replica-name', name, ...NO_LIMITS, ...args],
      ROUTES[route],
      { env: { PGPASSWORD: password }, command: machines.on(name, [process.execPath, MAIN]) },
    )
  ))
  const clients = WEBS.map((name) => createClient(`http://${name}.example:8080`))
  await until(async () => {
    const answers = await Promise.all(clients.map((client) => client.send('/health')))
    return answers.every(({ status }) => status === 200)
  }, 'both servers to be healthy')
  return {
    clients,
    async stop() {
      await Promise.all(clients.map((client) => client.close()))
      await Promise.all(all.map((served) => stopServing(served)))
    },
  }
}

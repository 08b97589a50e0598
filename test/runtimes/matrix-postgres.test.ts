/**
 * PostgreSQL on every runtime: from a program on Node, Bun and Deno, and on workerd from a Durable Object. Node runs the
 * whole contract with it, and all runtimes run the whole contract with another store; the others run the suites in which
 * it shows what a runtime does with sockets and timers.
 */
import t from 'tap'
import { deployAt } from '../contract/http/deploy.ts'
import { httpContract, type SuiteName } from '../contract/http/suites.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { type ServingChild, startChild } from './child.ts'
import { startDurable } from './durable.ts'
import { makePostgresTemplate } from './postgres-template.ts'
import { type Runtime, RUNTIMES, WORKERD } from './runtimes.ts'
import { siteOn } from './sites.ts'

const suites: readonly SuiteName[] = [
  'administration',
  'caching',
  'directory',
  'limits',
  'reports',
  'signups',
]

const starters: readonly (readonly [Runtime, () => ServingChild | Promise<ServingChild>])[] = [
  ...RUNTIMES.filter(({ name }) => !/22|24/.test(name)).map((runtime) =>
    [runtime, () => startChild(runtime.command)] as const
  ),
  [WORKERD, startDurable],
]

await t.test('keeps to the contract with PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const template = await makePostgresTemplate(server)
  t.jobs = starters.length
  await Promise.all(
    starters.map(([{ name, quirks }, start]) =>
      t.test(name, { buffered: true }, async (t) => {
        const child = await start()
        t.teardown(() => child.end())
        const deploy = deployAt(siteOn(child, template, quirks))
        await httpContract(t, deploy, name.startsWith('Node') ? undefined : suites)
      })
    ),
  )
})

/**
 * Postgres on every runtime: from a program on Bun and Deno, and on workerd from a Durable Object. Node is held to the
 * whole contract with it, and all runtimes to the whole contract with another store: these are the suites in which what a
 * runtime does with sockets and timers shows.
 */
import t from 'tap'
import { deployAt } from '../contract/http/deploy.ts'
import { SUITES } from '../contract/http/suites.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { type ServingChild, startChild } from './child.ts'
import { startDurable } from './durable.ts'
import { makePostgresTemplate } from './postgres-template.ts'
import { type Runtime, RUNTIMES, WORKERD } from './runtimes.ts'
import { siteOn } from './sites.ts'

const suites = ['administration', 'caching', 'directory', 'limits', 'reports', 'signups']

const starters: readonly (readonly [Runtime, () => ServingChild | Promise<ServingChild>])[] = [
  ...RUNTIMES.filter(({ name }) => !name.startsWith('Node')).map((runtime) =>
    [runtime, () => startChild(runtime.command)] as const
  ),
  [WORKERD, startDurable],
]

await t.test('keeps to the contract with PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  // Two, and sites take turns: what one deployment has signed is worth nothing to the next.
  const templates = [await makePostgresTemplate(server), await makePostgresTemplate(server)] as const
  t.jobs = starters.length
  await Promise.all(
    starters.map(([{ name, quirks }, start]) =>
      t.test(name, { buffered: true }, async (t) => {
        const child = await start()
        t.teardown(() => child.end())
        const deploy = deployAt(siteOn(child, templates, quirks))
        for (const suite of suites) await t.test(suite, (t) => SUITES[suite]!(t, deploy))
      })
    ),
  )
})

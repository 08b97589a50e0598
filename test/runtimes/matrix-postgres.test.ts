/**
 * PostgreSQL on every runtime: Node, Bun, Deno, and workerd through a Durable Object, which runs the complete contract. Bun
 * and Deno run that with SQLite, in `matrix.test.ts`. With `SUITES=all`, all run it here, too, and the contract of stores.
 */
import { execFile } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { deployAt } from '../contract/http/deploy.ts'
import { httpContract, type SuiteName } from '../contract/http/suites.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { CANONICAL_SETTINGS, type CanonicalAnswers, canonicalAnswers, equalAnswers } from './canonical.ts'
import { type ServingChild, startChild } from './child.ts'
import { makePostgresTemplate } from './postgres-template.ts'
import { isOlderNode, type Runtime, RUNTIMES, WORKERD } from './runtimes.ts'
import { siteOn } from './sites.ts'
import { startDurable } from './workerd.ts'

/** Suites that depend on the sockets and timers of a runtime. */
const timed: readonly SuiteName[] = ['caching', 'limits', 'administration', 'signups']

/** `npm test` runs those that depend on the store, on Node. */
function suitesOf(runtime: Runtime): readonly SuiteName[] | undefined {
  if (runtime === WORKERD) return undefined
  return runtime.name.startsWith('Node') ? [] : timed
}

const isWhole = process.env['SUITES'] === 'all'
const programs = RUNTIMES.filter((runtime) => !isOlderNode(runtime))
const starters: readonly (readonly [Runtime, () => ServingChild | Promise<ServingChild>])[] = [
  ...programs.map((runtime) => [runtime, () => startChild(runtime.command)] as const),
  [WORKERD, startDurable],
]

await t.test(
  'every runtime satisfies the contract with PostgreSQL',
  { skip: hasServer() ?? false },
  async (t) => {
    const server = await startServer()
    t.teardown(() => server.close())
    const template = await makePostgresTemplate(server)
    const answersOf = new Map<Runtime, CanonicalAnswers>()
    t.jobs = starters.length
    await Promise.all(
      starters.map(([runtime, start]) =>
        t.test(runtime.name, { buffered: true }, async (t) => {
          const child = await start()
          t.teardown(() => child.end())
          const deploy = deployAt(siteOn(child, template, runtime.quirks))
          await deploy(CANONICAL_SETTINGS, async (service) => {
            answersOf.set(runtime, await canonicalAnswers(service))
          })
          await httpContract(t, deploy, isWhole ? undefined : suitesOf(runtime))
        })
      ),
    )
    await t.test('responses have the same bytes on every runtime', (t) => {
      equalAnswers(t, answersOf)
      t.end()
    })

    if (!isWhole) return
    const script = fileURLToPath(new URL('store-child.ts', import.meta.url))
    for (const { name, command: [program = '', ...args] } of programs) {
      await t.test(`${name}: the contract of stores`, async (t) => {
        const words = [...args, script, await server.createDatabase()]
        const { stdout, stderr } = await promisify(execFile)(program, words)
        t.equal(stderr, '')
        t.match(stdout, /^\d{3} passed$/m)
      })
    }
  },
)

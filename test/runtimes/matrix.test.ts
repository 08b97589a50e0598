/** The HTTP contract on every runtime with files, and equal responses from all. */
import t from 'tap'
import { asOneAssertion } from '../contract/http/checks.ts'
import { deployAt } from '../contract/http/deploy.ts'
import { type Deploy, QUIRKS, type TestContext } from '../contract/http/service.ts'
import { httpContract, type SuiteName } from '../contract/http/suites.ts'
import { CANONICAL_SETTINGS, type CanonicalAnswers, canonicalAnswers, equalAnswers } from './canonical.ts'
import { startChild } from './child.ts'
import { interleaved } from './interleaved.ts'
import { absence, isOlderNode, type Runtime, RUNTIMES } from './runtimes.ts'
import { siteOn } from './sites.ts'
import { makeTemplate } from './template.ts'

/**
 * Suites that depend on what Node provides: HTTP, compression, timers, languages, cryptography and SQLite. Policy and paging
 * are the same on all versions.
 */
const ofNode: readonly SuiteName[] = [
  'conventions',
  'paths',
  'negotiation',
  'secrets',
  'bodies',
  'directory',
  'reference',
  'caching',
  'limits',
  'failures',
  'administration',
  'imported-keys',
  'signups',
  'reports',
  'own-endpoints',
]

const template = await makeTemplate()
t.teardown(() => template.remove())

const answersOf = new Map<Runtime, CanonicalAnswers>()
const table: string[][] = []

/** The suites that run on a runtime: `npm test` runs all of them on the current Node. */
function suitesOf(runtime: Runtime): readonly SuiteName[] | undefined {
  if (runtime.name === 'Node 26') return []
  return isOlderNode(runtime) ? ofNode : undefined
}

/** Runs the contract on a runtime. */
async function run(t: TestContext & { passing(): boolean }, runtime: Runtime, deploy: Deploy): Promise<void> {
  await deploy(CANONICAL_SETTINGS, async (service) => {
    answersOf.set(runtime, await canonicalAnswers(service))
  })
  const checks = await httpContract(t, deploy, suitesOf(runtime))
  table.push([runtime.name, `${checks} checks`, t.passing() ? 'passed' : 'FAILED'])
}

t.jobs = RUNTIMES.length
await Promise.all(
  RUNTIMES.map((runtime) =>
    t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false }, async (t) => {
      const child = startChild(runtime.command)
      t.teardown(() => child.end())
      await asOneAssertion(t, 'concurrent requests do not mix', (t) => interleaved(t, child, template))
      await run(t, runtime, deployAt(siteOn(child, template, runtime.quirks)))
    })
  ),
)

await t.test('responses have the same bytes on every runtime', (t) => {
  equalAnswers(t, answersOf)
  t.end()
})

console.log(table.map((cells) => cells.map((cell) => cell.padEnd(14)).join('').trimEnd()).join('\n'))
for (const { name, quirks } of answersOf.keys()) {
  for (const quirk of quirks) console.log(`${name}, ${quirk}: ${QUIRKS[quirk]}`)
}

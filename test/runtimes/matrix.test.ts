/** The complete HTTP contract on every runtime, and equal responses from all. */
import t from 'tap'
import { PROBLEMS } from '../../core/http/problem.ts'
import { asOneAssertion } from '../contract/http/checks.ts'
import { deployAt } from '../contract/http/deploy.ts'
import { type Deploy, QUIRKS, type TestContext } from '../contract/http/service.ts'
import { httpContract, type SuiteName } from '../contract/http/suites.ts'
import { CANONICAL_SETTINGS, type CanonicalAnswers, canonicalAnswers, codesIn, UNASKED } from './canonical.ts'
import { startChild } from './child.ts'
import { interleaved } from './interleaved.ts'
import { absence, isOlderNode, type Runtime, RUNTIMES, WORKERD } from './runtimes.ts'
import { siteIn, siteOn } from './sites.ts'
import { makeTemplate } from './template.ts'
import { startWorkerd } from './workerd.ts'

/** The runtime whose responses the others must equal. */
const reference = 'Node 26'

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

/** Runs the contract on a runtime. */
async function run(t: TestContext & { passing(): boolean }, runtime: Runtime, deploy: Deploy): Promise<void> {
  await deploy(CANONICAL_SETTINGS, async (service) => {
    answersOf.set(runtime, await canonicalAnswers(service))
  })
  const checks = await httpContract(t, deploy, isOlderNode(runtime) ? ofNode : undefined)
  table.push([runtime.name, `${checks} checks`, t.passing() ? 'passed' : 'FAILED'])
}

t.jobs = RUNTIMES.length + 1
await Promise.all([
  ...RUNTIMES.map((runtime) =>
    t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false }, async (t) => {
      const child = startChild(runtime.command)
      t.teardown(() => child.end())
      await asOneAssertion(t, 'concurrent requests do not mix', (t) => interleaved(t, child, template))
      await run(t, runtime, deployAt(siteOn(child, template, runtime.quirks)))
    })
  ),
  t.test(WORKERD.name, { buffered: true }, async (t) => {
    const workerd = await startWorkerd()
    t.teardown(() => workerd.end())
    await run(t, WORKERD, deployAt(siteIn(workerd, template, WORKERD.quirks)))
  }),
])

await t.test('responses have the same bytes on every runtime', (t) => {
  const wanted = [...answersOf].find(([{ name }]) => name === reference)![1]
  const possible = Object.keys(PROBLEMS).filter((code) => !UNASKED.includes(code))
  t.strictSame(codesIn(wanted), possible, 'the responses include every problem that requests can cause')
  for (const [{ name }, answers] of answersOf) {
    t.strictSame([...answers], [...wanted], `${name}: ${answers.size} answers`)
  }
  t.end()
})

console.log(table.map((cells) => cells.map((cell) => cell.padEnd(14)).join('').trimEnd()).join('\n'))
for (const { name, quirks } of answersOf.keys()) {
  for (const quirk of quirks) console.log(`${name}, ${quirk}: ${QUIRKS[quirk]}`)
}

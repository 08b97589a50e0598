/** Every runtime, one behaviour: the whole contract of the wire on each, and the same bytes from all. */
import t from 'tap'
import { PROBLEMS } from '../../core/http/problem.ts'
import { deployAt } from '../contract/http/deploy.ts'
import { QUIRKS } from '../contract/http/quirks.ts'
import type { Deploy, Tester } from '../contract/http/service.ts'
import { httpContract } from '../contract/http/suites.ts'
import {
  ALL_COUNTRIES,
  CANONICAL_SETTINGS,
  type CanonicalAnswers,
  canonicalAnswers,
  codesIn,
  UNASKED,
} from './canonical.ts'
import { startChild } from './child.ts'
import { type Count, counting } from './counting.ts'
import { absence, type Runtime, RUNTIMES, WORKERD } from './runtimes.ts'
import { siteIn, siteOn } from './sites.ts'
import { makeTemplate } from './template.ts'
import { startWorkerd } from './workerd.ts'

/** Whose answers are compared with all others'. */
const reference = 'Node 26'

/** What the line of a runtime in the table is made of. */
interface Line extends Runtime {
  readonly count: Count
  answers: CanonicalAnswers
  passed: boolean
  differences: number
}

// Two, and sites take turns: what one deployment has signed is worth nothing to the next.
const templates = [await makeTemplate(), await makeTemplate()] as const
t.teardown(() => templates.forEach((template) => template.remove()))

const lines = [...RUNTIMES, WORKERD].map(({ name, quirks }): Line => {
  return { name, quirks, count: { points: 0 }, answers: new Map(), passed: false, differences: 0 }
})
const lineOf = (name: string): Line => lines.find((line) => line.name === name)!

/** Holds a runtime to the contract. */
async function hold(t: Tester & { passing(): boolean }, line: Line, deploy: Deploy): Promise<void> {
  // The first site is of the first template, on every runtime.
  await deploy(CANONICAL_SETTINGS, async (service) => void (line.answers = await canonicalAnswers(service)))
  await httpContract(counting(t, line.count), deploy)
  line.passed = t.passing()
}

t.jobs = lines.length
await Promise.all([
  ...RUNTIMES.map((runtime) =>
    t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false }, async (t) => {
      const child = startChild(runtime.command)
      t.teardown(() => child.end())
      await hold(t, lineOf(runtime.name), deployAt(siteOn(child, templates, runtime.quirks)))
    })
  ),
  t.test(WORKERD.name, { buffered: true }, async (t) => {
    const workerd = await startWorkerd()
    t.teardown(() => workerd.end())
    await hold(t, lineOf(WORKERD.name), deployAt(siteIn(workerd, templates, WORKERD.quirks)))
  }),
])

await t.test('answers are the same bytes on every runtime', (t) => {
  const wanted = lineOf(reference).answers
  t.strictSame(
    codesIn(wanted),
    Object.keys(PROBLEMS).filter((code) => !UNASKED.includes(code)),
    'all problems that requests bring about are among them',
  )
  for (const line of lines.filter(({ answers }) => answers.size > 0)) {
    t.equal(line.answers.size, wanted.size, `${line.name}: as many answers`)
    for (const [question, answer] of wanted) {
      if (line.quirks.includes('names-some-countries') && question.endsWith(ALL_COUNTRIES)) continue
      if (!t.equal(line.answers.get(question), answer, `${line.name}: ${question}`)) line.differences++
    }
  }
  t.end()
})

const table = lines.filter(({ answers }) => answers.size > 0).map((line) => [
  line.name,
  `${line.count.points} cases`,
  line.passed ? 'passed' : 'FAILED',
  `${line.answers.size} answers`,
  line.differences > 0 ? `${line.differences} DIFFER` : 'the same bytes',
])
console.log(table.map((cells) => cells.map((cell) => cell.padEnd(14)).join('').trimEnd()).join('\n'))
for (const { name, quirks } of lines) {
  for (const quirk of quirks) console.log(`${name}, ${quirk}: ${QUIRKS[quirk]}`)
}

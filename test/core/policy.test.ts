import t from 'tap'
import { createTally, provePolicy } from './policy/policy.ts'

t.test('the service decides as the contract requires', (t) => {
  const tally = createTally()
  provePolicy(tally)
  t.same(tally.examples, [])
  t.ok(tally.decisions >= 900_000, `${tally.decisions} comparisons`)
  t.end()
})

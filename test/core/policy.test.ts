import t from 'tap'
import { proveOrder } from './policy/order.ts'
import { provePolicy } from './policy/policy.ts'
import { proveRequests } from './policy/requests.ts'
import { createTally, type Tally } from './policy/tally.ts'

await t.test('the service decides what the contract says', (t) => {
  const total = { decisions: 0, mismatches: 0 }
  const prove = (name: string, atLeast: number, fill: (tally: Tally) => void): void => {
    const tally = createTally()
    fill(tally)
    total.decisions += tally.decisions
    total.mismatches += tally.mismatches
    t.same(tally.examples, [], `${name}: ${tally.decisions.toLocaleString('en')} compared`)
    t.ok(tally.decisions >= atLeast, `${name}: nothing was left out`)
  }
  prove('decide and explain', 10_000_000, (tally) => provePolicy(tally))
  prove('whole requests', 200_000, (tally) => proveRequests(tally))
  prove('the order of checks', 10_000, (tally) => proveOrder(tally))
  t.comment(`${total.decisions} decisions, ${total.mismatches} mismatches`)
  t.end()
})

import t from 'tap'
import { provePolicy } from './policy/policy.ts'

t.test('the service decides as the contract requires', (t) => {
  const comparisons = provePolicy()
  t.ok(comparisons >= 1_250_000, `${comparisons} comparisons`)
  t.end()
})

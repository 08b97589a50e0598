/** Proves the order of checks, as test/core/policy.test.ts does, up to the first mismatch. */
import t from 'tap'
import { createTally } from '../core/policy/comparison.ts'

// Imported in the test, because StrykerJS counts a failed test but not a file that fails to load.
t.test('the order of checks equals that of the oracle', async (t) => {
  const { proveOrder } = await import('../core/policy/order.ts')
  const tally = createTally(true)
  proveOrder(tally)
  t.ok(tally.decisions > 3_000)
})

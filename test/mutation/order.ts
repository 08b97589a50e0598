/** Proves the order of checks, as test/core/policy.test.ts does, up to the first mismatch. */
import t from 'tap'
import { createTally } from '../core/policy/comparison.ts'

// Loaded inside of the test: StrykerJS counts a failed test, but not a file that cannot be loaded.
t.test('the order of checks', async (t) => {
  const { proveOrder } = await import('../core/policy/order.ts')
  const tally = createTally(true)
  proveOrder(tally)
  t.ok(tally.decisions > 3_000)
})

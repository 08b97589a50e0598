/** Proves a part of what test/core/policy.test.ts does, in seconds: every state of a key, address and requested partner. */
import t from 'tap'
import { createTally } from '../core/policy/tally.ts'

// Loaded inside of the test: StrykerJS counts a failed test, but not a file that cannot be loaded.
t.test('decide and explain', async (t) => {
  const { proveKeys } = await import('../core/policy/policy.ts')
  const tally = createTally(true)
  proveKeys(tally)
  t.ok(tally.decisions > 10_000)
})

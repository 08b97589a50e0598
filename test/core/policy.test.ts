import t from 'tap'
import { createTally, type Tally } from './policy/comparison.ts'
import { provePolicy } from './policy/policy.ts'
import { proveRequests } from './policy/requests.ts'

const proofs: readonly (readonly [name: string, prove: (tally: Tally) => void, atLeast: number])[] = [
  ['decide and explain', provePolicy, 900_000],
  ['complete requests', proveRequests, 25_000],
]
for (const [name, prove, atLeast] of proofs) {
  t.test(`the service decides as the contract requires: ${name}`, (t) => {
    const tally = createTally()
    prove(tally)
    t.same(tally.examples, [])
    t.ok(tally.decisions >= atLeast, `${tally.decisions} comparisons`)
    t.end()
  })
}

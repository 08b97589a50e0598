import t from 'tap'
import { deployTo } from '../contract/http/deploy.ts'
import { onNode } from '../contract/http/wires.ts'
import { memory } from '../contract/http/stores.ts'
import { httpContract } from '../contract/http/suites.ts'

await t.test('Node with a memory store satisfies the contract', async (t) => {
  await httpContract(t, deployTo(memory, onNode))
})

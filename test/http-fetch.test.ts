import t from 'tap'
import { deployTo } from './contract/http/deploy.ts'
import { inProcess } from './contract/http/mounts.ts'
import { memory } from './contract/http/stores.ts'
import { httpContract } from './contract/http/suites.ts'

await t.test('the fetch handler keeps to the contract', (t) => httpContract(t, deployTo(memory, inProcess)))

/** Runs the contract of stores with the runtime that runs it, on an empty database. Argument: its URL. */
import process from 'node:process'
import { sharedStoreContract, storeContract, type TestContext } from '../contract/store/suites.ts'
import { contractStore } from '../postgres/fixtures.ts'

const [url = ''] = process.argv.slice(2)

let passed = 0

/** The contract reports one assertion for each test that passes, and otherwise what is wrong. */
function report(found: unknown, expected: unknown, message?: string): void {
  console.error(message, { found, expected })
  process.exitCode = 1
}
const t: TestContext = {
  async test(name, body) {
    try {
      await body(t)
      passed++
    } catch (error) {
      report(error, undefined, name)
    }
  },
  ok: (value, message) => value || report(value, true, message),
  equal: report,
  strictSame: report,
}

const { emptied, open } = await contractStore({ createDatabase: () => Promise.resolve(url) })
await storeContract(t, emptied)
await sharedStoreContract(t, () => emptied().then(() => open))
console.log(`${passed} passed`)
process.exit()

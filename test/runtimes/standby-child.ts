/**
 * Runs the contract of stores with the runtime that runs it, on an empty database of which a standby answers reads. Prints
 * what became of them. Arguments: the URL of the database on the primary, and the port of the standby.
 */
import process from 'node:process'
import postgres from 'postgres'
import type { TestContext } from '../contract/store/suites.ts'
import { atPort } from '../postgres/server.ts'
import { caughtUp } from '../postgres/standby.ts'
import { standbyContract } from '../postgres/standby-contract.ts'

const [url = '', port = ''] = process.argv.slice(2)
const [primary, standby] = [postgres(url, { max: 1 }), postgres(atPort(url, Number(port)), { max: 1 })]

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

const reads = await standbyContract(t, { createDatabase: () => Promise.resolve(url) }, {
  port: Number(port),
  caughtUp: () => caughtUp(primary, standby),
})
console.log(`${passed} passed; ${JSON.stringify(reads)}`)
process.exit()

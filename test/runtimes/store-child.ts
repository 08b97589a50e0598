/**
 * Runs the contract of stores with the runtime that runs it: on an empty PostgreSQL database, whose URL is the argument;
 * without one, on stores in memory. Prints the number of tests that passed, and reports the others on standard error.
 */
import process from 'node:process'
import { sharedStoreContract, storeContract, type TestContext } from '../contract/store/suites.ts'
import { contractStore } from '../postgres/fixtures.ts'
import { openMemoryStore, shareMemoryStore } from '../support/memory-store.ts'

let passed = 0

/** The contracts report one assertion for each test that passes, and otherwise what is wrong. */
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

async function onPostgres(url: string): Promise<void> {
  const { emptied, open } = await contractStore({ createDatabase: () => Promise.resolve(url) })
  await storeContract(t, emptied)
  await sharedStoreContract(t, () => emptied().then(() => open))
}

async function inMemory(): Promise<void> {
  await storeContract(t, openMemoryStore)
  await sharedStoreContract(t, shareMemoryStore)
}

const [url] = process.argv.slice(2)
await (url === undefined ? inMemory() : onPostgres(url))
console.log(`${passed} passed`)
process.exit()

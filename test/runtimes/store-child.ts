/**
 * Runs contracts with the runtime that runs it: that of stores on an empty PostgreSQL database, whose URL is the argument;
 * without one, that of stores and that of HTTP on stores in memory. Prints the number of tests that passed, and reports the
 * others on standard error.
 */
import process from 'node:process'
import { deployTo } from '../contract/http/deploy.ts'
import { memory } from '../contract/http/stores.ts'
import { httpContract, type SuiteName, SUITES } from '../contract/http/suites.ts'
import { inProcess, onNode } from '../contract/http/wires.ts'
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
  const isDeno = process.versions['deno'] !== undefined
  const isNode = !isDeno && process.versions['bun'] === undefined
  // On Node, the tests of stores run it.
  if (!isNode) {
    await storeContract(t, openMemoryStore)
    await sharedStoreContract(t, shareMemoryStore)
  }
  // It compares names of countries with those of the runtime, and Deno has another name for one.
  const left: SuiteName | undefined = isDeno ? 'reference' : undefined
  const suites = (Object.keys(SUITES) as SuiteName[]).filter((name) => name !== left)
  // The HTTP clients of Bun and Deno change targets and header fields.
  await httpContract(t, deployTo(memory, isNode ? onNode : inProcess), suites)
}

const [url] = process.argv.slice(2)
await (url === undefined ? inMemory() : onPostgres(url))
console.log(`${passed} passed`)
process.exit()

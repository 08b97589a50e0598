/**
 * The program that tries mutants: it gets folders that hold a copy of `core` each, and prints a line of JSON for each
 * with what gave it away, or null for one that it took for the original.
 */
import { argv } from 'node:process'
import { pathToFileURL } from 'node:url'
import { proveOrder } from './order.ts'
import { provePolicy } from './policy.ts'
import { proveRequests } from './requests.ts'
import { loadSubject } from './subject.ts'
import { Caught, createTally } from './tally.ts'

for (const folder of argv.slice(2)) {
  console.log(JSON.stringify({ folder, caught: await judge(folder) }))
}

/** The cheapest part first. */
async function judge(folder: string): Promise<string | null> {
  try {
    const subject = await loadSubject(pathToFileURL(`${folder}/core/`))
    for (const prove of [proveOrder, provePolicy, proveRequests]) prove(subject, createTally(true), false)
    return null
  } catch (error) {
    if (error instanceof Caught) return error.message
    // It never came to an answer, which is no proof of anything.
    throw error
  }
}

import process from 'node:process'
import type { Client } from './client.ts'

/** Prints whether a promise was kept. The program ends with 1 when one was not. */
export function judge(promise: string, isKept: boolean): void {
  console.log(`  ${isKept ? 'kept  ' : 'BROKEN'}  ${promise}`)
  if (!isKept) process.exitCode = 1
}

/** Replicas that are not killed answer everything, whatever happens to their store. */
export function judgeFailures(clients: readonly Client[]): void {
  const statuses = clients.flatMap(({ failures }) => failures.map(({ status }) => status || 'no answer'))
  judge(`no request is answered with 500 or loses its connection (${statuses.length})`, statuses.length === 0)
  if (statuses.length > 0) console.log(`          ${[...new Set(statuses)].join(', ')}`)
}

/** Ends the program as failed when it is not over by then: what hangs is a finding, too. */
export function endWithin(seconds: number): void {
  setTimeout(() => {
    console.log(`  BROKEN  the trial is not over after ${seconds} s`)
    process.exit(1)
  }, seconds * 1000).unref()
}

/** A count from the command line. @param place Of the argument, from 0. */
export function countAt(place: number, otherwise: number): number {
  const text = process.argv[2 + place]
  if (text === undefined) return otherwise
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  console.error(`A count is an integer from 1 on, and ${text} is none.`)
  process.exit(2)
}

/** Milliseconds for people. */
export function ms(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? `${Math.round(milliseconds).toLocaleString('en')} ms` : 'never'
}

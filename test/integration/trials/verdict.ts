import process from 'node:process'
import type { Client } from './client.ts'

/** Prints whether a promise was kept. A broken promise sets exit code 1. */
export function check(promise: string, isKept: boolean): void {
  console.log(`  ${isKept ? 'kept  ' : 'BROKEN'}  ${promise}`)
  if (!isKept) process.exitCode = 1
}

/** Checks that replicas answered every request, whatever happened to their store. */
export function checkFailures(clients: readonly Client[]): void {
  const statuses = clients.flatMap(({ failures }) => failures.map(({ status }) => status || 'no answer'))
  check(`no request gets 500 or loses its connection (${statuses.length})`, statuses.length === 0)
  if (statuses.length > 0) console.log(`          ${[...new Set(statuses)].join(', ')}`)
}

/** Fails the program if it has not ended by then. */
export function endWithin(seconds: number): void {
  setTimeout(() => {
    console.log(`  BROKEN  the trial did not end within ${seconds} s`)
    process.exit(1)
  }, seconds * 1000).unref()
}

/** A count from the command line. @param place Of the argument, from 0. */
export function countAt(place: number, otherwise: number): number {
  const text = process.argv[2 + place]
  if (text === undefined) return otherwise
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  console.error(`A count must be an integer of at least 1, not ${text}.`)
  process.exit(2)
}

/** Formats milliseconds. */
export function ms(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? `${Math.round(milliseconds).toLocaleString('en')} ms` : 'never'
}

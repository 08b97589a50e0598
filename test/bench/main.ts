/**
 * Prints the speed of the service as ratios to peers that do the same in the same run. Nothing is asserted: absolute
 * figures differ between machines, and a busy machine makes all of them worse.
 *
 *   npm run bench                    everything, in about seven minutes
 *   npm run bench -- list start      some parts
 *   npm run bench -- --json          as JSON
 */
import process from 'node:process'
import { machineLine, type Row, tableOf } from './report.ts'

/** Each part is loaded when it runs, so that it is measured without the code of the others in its process. */
const parts: Readonly<Record<string, () => Promise<Row[]>>> = {
  pipeline: async () => (await import('./pipeline.ts')).run(),
  own: async () => (await import('./own.ts')).run(),
  list: async () => (await import('./http.ts')).runList(),
  'verify-key': async () => (await import('./http.ts')).runVerify(),
  runtimes: async () => (await import('./http.ts')).runRuntimes(),
  searches: async () => (await import('./searches.ts')).run(),
  'look-ups': async () => (await import('./look-ups.ts')).run(),
  signups: async () => (await import('./signups.ts')).run(),
  memory: async () => (await import('./memory.ts')).run(),
  start: async () => (await import('./start.ts')).run(),
}

const args = process.argv.slice(2)
const json = args.includes('--json')
const chosen = args.filter((name) => name !== '--json')
const unknown = chosen.filter((name) => !Object.hasOwn(parts, name))

if (unknown.length > 0) {
  process.stderr.write(
    `There is no part ${unknown.join(', ')}. The parts are ${Object.keys(parts).join(', ')}.\n`,
  )
  process.exitCode = 2
} else {
  const machine = machineLine()
  const rows: Row[] = []
  for (const [name, run] of Object.entries(parts)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue
    const startedAt = performance.now()
    process.stderr.write(`${name} … `)
    rows.push(...await run())
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`)
  }
  process.stdout.write(
    json ? `${JSON.stringify({ machine, rows })}\n` : `\n${machine}\n\n${tableOf(rows)}\n`,
  )
}

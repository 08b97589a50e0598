/**
 * Prints how fast the service is, as ratios to peers that did the same in the same run. Nothing here is asserted:
 * figures of one machine say little about another, and a busy machine makes all of them worse.
 *
 *   npm run bench                    everything, in about ten minutes
 *   npm run bench -- http start      some parts
 *   npm run bench -- --json          the same for programs
 *
 * PARTNER_API_BENCH_DIR=DIR keeps the big SQLite file there and uses it again; PARTNER_API_BENCH_ROWS=N makes the big
 * stores smaller than a million rows.
 */
import process from 'node:process'
import { machineLine, type Row, tableOf } from './report.ts'

/** Loaded when they run, so that a part is measured without the others' code in its process. */
const parts: Readonly<Record<string, () => Promise<Row[]>>> = {
  pipeline: async () => (await import('./pipeline.ts')).run(),
  http: async () => (await import('./http.ts')).runNode(),
  bun: async () => (await import('./http.ts')).runBun(),
  deno: async () => (await import('./http.ts')).runDeno(),
  distinct: async () => (await import('./http.ts')).runDistinct(),
  sqlite: async () => (await import('./sqlite.ts')).run(),
  postgres: async () => (await import('./postgres.ts')).run(),
  start: async () => (await import('./start.ts')).runVersion(),
  'first-answer': async () => (await import('./start.ts')).runFirstAnswer(),
}

const words = process.argv.slice(2)
const json = words.includes('--json')
const asked = words.filter((word) => word !== '--json')
const unknown = asked.filter((name) => !Object.hasOwn(parts, name))

if (unknown.length > 0) {
  process.stderr.write(
    `There is no part ${unknown.join(', ')}; the parts are ${Object.keys(parts).join(', ')}.\n`,
  )
  process.exitCode = 2
} else {
  const machine = machineLine()
  const rows: Row[] = []
  for (const [name, run] of Object.entries(parts)) {
    if (asked.length > 0 && !asked.includes(name)) continue
    const startedAt = performance.now()
    process.stderr.write(`${name} … `)
    rows.push(...await run())
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`)
  }
  process.stdout.write(
    json ? `${JSON.stringify({ machine, rows })}\n` : `\n${machine}\n\n${tableOf(rows)}\n`,
  )
}

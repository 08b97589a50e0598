import { availableParallelism, cpus, loadavg } from 'node:os'
import process from 'node:process'

/** One line of the table. */
export interface Row {
  readonly part: string
  readonly what: string
  readonly ours: string
  /** What it is compared with, in the same run. */
  readonly against?: string
  readonly ratio?: string
  readonly target?: string
  readonly met?: boolean
}

const columns = ['part', 'what', 'ours', 'against', 'ratio', 'target'] as const

/** Says where the figures come from: they mean nothing elsewhere. */
export function machineLine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  const load = loadavg()[0]!.toFixed(2)
  return `Node ${process.versions.node}, ${process.platform} ${process.arch}, ` +
    `${availableParallelism()} × ${model}, load ${load} at the start`
}

/** Lays rows out as a table for people. */
export function tableOf(rows: readonly Row[]): string {
  const lines = [
    [...columns, ''],
    ...rows.map((row) => [...columns.map((name) => row[name] ?? ''), verdict(row)]),
  ]
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => [...line[column]!].length)))
  return lines
    .map((line) => line.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd())
    .join('\n')
}

function verdict({ met }: Row): string {
  return met === undefined ? '' : met ? 'met' : 'NOT MET'
}

/**
 * Runs each in turn, round after round, so that other load on the machine affects all of them alike.
 *
 * @returns The results of each, without those of the rounds that warm up.
 */
export async function alternate<T>(
  rounds: number,
  warmUps: number,
  runs: readonly (() => Promise<T>)[],
): Promise<T[][]> {
  const results = runs.map((): T[] => [])
  for (let round = -warmUps; round < rounds; round++) {
    for (const [index, run] of runs.entries()) {
      const result = await run()
      if (round >= 0) results[index]!.push(result)
    }
  }
  return results
}

/** The value below which the share `rank` (0–1) of the values lies; of an even number, no mean is made. */
export function quantile(values: readonly number[], rank: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(rank * sorted.length))]!
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Three significant digits, thousands apart. */
export function figure(value: number, unit: string): string {
  const text = value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)))
  return `${text} ${unit}`
}

/** How many times better than another one. */
export function times(ratio: number): string {
  return `${ratio.toFixed(2)} ×`
}

/** Processor time of other processes on Linux: unlike wall time, it hardly changes when the machine has other work. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Microseconds of all threads of a process so far, as proc_pid_schedstat(5) counts them. */
export function usedBy(pid: number): number {
  const files = globSync(`/proc/${pid}/task/*/schedstat`)
  return files.reduce((sum, file) => sum + firstNumber(file) / 1000, 0)
}

/** Microseconds of a PostgreSQL server with this data folder, its ended processes included. */
export function usedByPostgres(dataFolder: string): number {
  const postmaster = firstNumber(join(dataFolder, 'postmaster.pid'))
  // proc_pid_stat(5): cutime and cstime, in hundredths of a second.
  const fields = readFileSync(`/proc/${postmaster}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
  const ended = (Number(fields[13]) + Number(fields[14])) * 10_000
  return [postmaster, ...backendsOf(dataFolder)].reduce((sum, pid) => sum + usedBy(pid), ended)
}

/** Bytes that each backend of a database has for itself. */
export function privateBytes(dataFolder: string, database: string): number[] {
  return backendsOf(dataFolder)
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(` ${database} `))
    .map((pid) => {
      const sizes = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').matchAll(/^Private_\w+: +(\d+) kB/gm)
      return Array.from(sizes, ([, size]) => Number(size) * 1024).reduce((sum, size) => sum + size, 0)
    })
}

/** Bytes of a process in memory. */
export function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

function backendsOf(dataFolder: string): number[] {
  const postmaster = firstNumber(join(dataFolder, 'postmaster.pid'))
  return readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ').map(Number)
}

/** 0 if the process has ended. */
function firstNumber(file: string): number {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'))
  } catch {
    return 0
  }
}

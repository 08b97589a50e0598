import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import process from 'node:process'

/** The core that servers run on, and the one of the process that loads them. */
export const CORES = { server: 0, loader: 1 }

const pins = process.platform === 'linux' && availableParallelism() > 1 && hasTaskset()

/** A command line that runs on one core, where that can be had. */
export function pinned(core: number, command: readonly string[]): readonly string[] {
  return pins ? ['taskset', '-c', String(core), ...command] : command
}

/** Keeps this process on one core for as long as `work` takes. */
export async function whilePinned<T>(core: number, work: () => Promise<T>): Promise<T> {
  if (!pins) return await work()
  const all = `0-${availableParallelism() - 1}`
  pinSelf(String(core))
  try {
    return await work()
  } finally {
    pinSelf(all)
  }
}

function pinSelf(cores: string): void {
  execFileSync('taskset', ['-a', '-p', '-c', cores, String(process.pid)], { stdio: 'ignore' })
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

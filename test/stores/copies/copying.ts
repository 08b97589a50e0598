/** Copies as operators make them, and copies that stand still at a place. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { cleanEnv, type Ended, runProgram } from '../../support/cli-program.ts'

/** Where a copy stands still: what it does, with which table, from so many rows on. */
export type Stop = readonly [doing: 'copying' | 'comparing', table: string, rows: number]

const child = fileURLToPath(new URL('child.ts', import.meta.url))

/** Copies a store. */
export function copy(from: string, to: string, ...more: readonly string[]): Promise<Ended> {
  return runProgram(['store', 'copy', '--from', from, '--to', to, ...more])
}

/** Starts a copy, and resolves when it stands still. */
export async function copyUpTo(
  from: string,
  to: string,
  stop: Stop,
): Promise<{ readonly line: string; kill(): Promise<void> }> {
  const copying = spawn(process.execPath, [child, from, to, ...stop.map(String)], {
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface(copying.stdout), 'line')
  return {
    line: String(line),
    async kill() {
      copying.kill('SIGKILL')
      await once(copying, 'close')
    },
  }
}

/** Leaves a copy behind that was killed at a place. */
export async function breakOff(from: string, to: string, stop: Stop): Promise<void> {
  const copying = await copyUpTo(from, to, stop)
  await copying.kill()
}

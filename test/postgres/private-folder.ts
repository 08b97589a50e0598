import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statfsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { giveAway } from './unprivileged.ts'

/** A new folder that only the one who runs the unprivileged programs can look into. */
export interface PrivateFolder {
  readonly path: string
  /** Deletes it. Otherwise it is deleted after this process has ended. */
  remove(): Promise<void>
}

const memory = '/dev/shm'
const leastMemory = 2 ** 30

/** @param inMemory Whether nothing in it need survive the machine: ext4 is slow where many files were just deleted. */
export async function createPrivateFolder(name: string, inMemory: boolean): Promise<PrivateFolder> {
  const path = await mkdtemp(join(inMemory && hasMemory() ? memory : tmpdir(), `partner-api-${name}-`))
  await giveAway(path)
  // What wrote into it may be about to end, too.
  const keeper = spawn(
    '/bin/sh',
    ['-c', 'read -r _; for _ in 1 2 3 4 5; do rm -rf "$0" && exit; sleep 1; done', path],
    { stdio: ['pipe', 'ignore', 'ignore'], detached: true, cwd: '/' },
  )
  await once(keeper, 'spawn')
  const removed = once(keeper, 'exit')
  keeper.unref()

  async function remove(): Promise<void> {
    keeper.ref()
    keeper.stdin.end()
    await removed
  }

  return { path, remove }
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= leastMemory
  } catch {
    return false
  }
}

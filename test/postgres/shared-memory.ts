/**
 * Shared memory that outlives the processes it belongs to. A server that starts again on the same data removes its
 * own, but what is killed for good would leave it to the machine, which has room for 4,096 such segments.
 */
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { run } from './unprivileged.ts'

/** @returns What these processes use; nothing where there is no /proc. */
export function sharedMemoryOf(pids: readonly number[]) {
  // proc_pid_maps(5): the inode of a System V segment is its identifier.
  const maps = pids.map(mapsOf).join('\n')
  return {
    files: new Set(Array.from(maps.matchAll(/ (\/dev\/shm\/PostgreSQL\.\d+)$/gm), ([, path = '']) => path)),
    segments: new Set(Array.from(maps.matchAll(/ (\d+) +\/SYSV/g), ([, id = '']) => id)),
  }
}

/** Call it once the segments, which have System V identifiers, are unused. */
export async function removeSharedMemory(
  { files, segments }: ReturnType<typeof sharedMemoryOf>,
): Promise<void> {
  await Promise.all([...files].map((path) => rm(path, { force: true })))
  // The last one who lets go of a segment may have removed it.
  await Promise.all([...segments].map((id) => run('ipcrm', ['-m', id]).catch(() => {})))
}

function mapsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/maps`, 'utf8')
  } catch {
    return ''
  }
}

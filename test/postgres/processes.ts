/** Processes that are not our children, because backends are the postmaster's, and the shared memory they leave. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import process from 'node:process'
import { run } from './unprivileged.ts'
import { until } from './until.ts'

interface Entry {
  readonly pid: number
  readonly parent: number
  /** One letter as `ps` has it: T is stopped, Z is a zombie. */
  readonly state: string
}

/**
 * Stops a process, and then its children: it can start none any more.
 *
 * @param before Called with each process before it is stopped.
 * @returns All of them.
 */
export async function freeze(
  pid: number,
  before: (pid: number) => void = () => {},
): Promise<readonly number[]> {
  before(pid)
  signal(pid, 'SIGSTOP')
  await until(() => 'TZ'.includes(stateOf(pid)), `process ${pid} to stop`)
  const children = entries().filter(({ parent }) => parent === pid).map(({ pid }) => pid)
  for (const child of children) {
    before(child)
    signal(child, 'SIGSTOP')
  }
  await until(() => children.every((child) => 'TZ'.includes(stateOf(child))), 'its children to stop')
  return [pid, ...children]
}

/** Resolves when none of them runs any more. */
export function gone(pids: readonly number[]): Promise<void> {
  return until(() => pids.every((pid) => 'Z'.includes(stateOf(pid))), `${pids.join(', ')} to end`)
}

/** Sends a signal to a process that may be gone. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** @returns '' when there is no such process. */
function stateOf(pid: number): string {
  if (process.platform === 'linux') return readEntry(pid)?.state ?? ''
  return spawnSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).stdout.slice(0, 1)
}

function entries(): Entry[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
      .flatMap((name) => readEntry(Number(name)) ?? [])
  }
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' })
  return stdout.trim().split('\n').map((line) => {
    const [pid, parent, state = ''] = line.trim().split(/\s+/)
    return { pid: Number(pid), parent: Number(parent), state: state.slice(0, 1) }
  })
}

/** proc_pid_stat(5): the name is in parentheses and may contain any. */
function readEntry(pid: number): Entry | undefined {
  const text = readProcess(pid, 'stat')
  if (text === '') return undefined
  const [state = '', parent] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { pid, parent: Number(parent), state }
}

/** @returns '' when there is no such process, or no /proc. */
function readProcess(pid: number, file: 'maps' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/**
 * Shared memory that outlives the processes it belongs to. A server that starts again on the same data removes its
 * own, but what is killed for good would leave it to the machine, which has room for 4,096 such segments.
 *
 * @returns What these processes use; nothing where there is no /proc.
 */
export function sharedMemoryOf(pids: readonly number[]) {
  // proc_pid_maps(5): the inode of a System V segment is its identifier.
  const maps = pids.map((pid) => readProcess(pid, 'maps')).join('\n')
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

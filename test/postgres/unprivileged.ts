/** Programs that run without root's rights and end when the process that started them ends. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import process from 'node:process'

/** "nobody" wherever it has a name. */
const nobody = 65534
export const runsAsRoot: boolean = process.getuid?.() === 0
/** Whose files and processes these are. */
export const runningUid: number | undefined = runsAsRoot ? nobody : process.getuid?.()
/** Whether a child ends with this process however it ends: not on macOS. */
export const canEndWithUs: boolean = process.platform === 'linux' &&
  spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true']).status === 0

/**
 * The command that gives root's rights away first.
 *
 * @param lastSignal What it gets when this process is gone.
 */
export function unprivileged(command: readonly string[], lastSignal = 'KILL'): readonly string[] {
  const ids = runsAsRoot ? [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : []
  return canEndWithUs ? ['setpriv', ...ids, `--pdeathsig=${lastSignal}`, '--', ...command] : command
}

/**
 * Starts such a program: with a bare environment, in a session of its own where something else ends it, so that who
 * kills our process group leaves it the time to clean up. Its standard error is a pipe.
 */
export function spawnUnprivileged(command: readonly string[], cwd: string, lastSignal: string): ChildProcess {
  const [file = '', ...rest] = unprivileged(command, lastSignal)
  return spawn(file, rest, {
    cwd,
    env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
    detached: canEndWithUs,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

/** Makes what is at the path belong to the one who runs these programs. */
export async function giveAway(path: string): Promise<void> {
  if (runsAsRoot) await run('chown', ['-R', `${nobody}:${nobody}`, path])
}

/** @throws when it ends badly, with what it said. */
export function run(command: string, rest: readonly string[], cwd?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, rest, { cwd, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => said += text)
    child.on('error', reject)
    child.on(
      'close',
      (code) => code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}: ${said}`)),
    )
  })
}

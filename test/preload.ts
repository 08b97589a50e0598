/** `run.ts` loads it into each test program before anything else. */
import hooks from 'node:async_hooks'
import { readFileSync, writeSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import process from 'node:process'

// tap's domains track every promise, which takes a sixth of the time of an asynchronous test. Without them, an uncaught
// error ends the program, which has printed it.
Object.assign(hooks, { createHook: () => ({ enable() {}, disable() {} }) })
syncBuiltinESMExports()

/** Seconds of processor time of this process and of its children that have ended. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1e6
  if (process.platform !== 'linux') return own
  // proc_pid_stat(5): cutime and cstime, in hundredths of a second.
  const text = readFileSync('/proc/self/stat', 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return own + (Number(fields[13]) + Number(fields[14])) / 100
}

process.on('exit', () => writeSync(3, String(processorSeconds())))

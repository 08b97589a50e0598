/**
 * `node test/together.ts FILE…` runs test files one after the other in this process, each as a subtest that stands in for
 * its `tap`: a small file takes a third of a second to start a process and to import what it tests. Reports to descriptor 3
 * how long each took, and how much of a processor.
 */
import hooks from 'node:async_hooks'
import { readFileSync, writeSync } from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import process from 'node:process'
import type { Test } from 'tap'

// tap's domains track every promise, which takes a sixth of the time of an asynchronous test. Without them, an uncaught
// error ends the program, which has printed it.
Object.assign(hooks, { createHook: () => ({ enable() {}, disable() {} }) })
syncBuiltinESMExports()
const { default: t } = await import('tap')

let current: Test = t
Object.assign(globalThis, { currentTest: () => current })
registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'tap' || !context.parentURL?.endsWith('.ts')) return next(specifier, context)
    // A module of its own for each that imports it.
    return { url: `tap:${context.parentURL}`, format: 'module', shortCircuit: true }
  },
  load(url, context, next) {
    if (!url.startsWith('tap:')) return next(url, context)
    const source = 'const t = currentTest(); export default t; export const test = t.test.bind(t)'
    return { format: 'module', source, shortCircuit: true }
  },
})

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

let before = { seconds: 0, processorSeconds: 0 }
for (const file of process.argv.slice(2)) {
  await t.test(file, async (t) => {
    current = t
    await import(new URL(`../${file}`, import.meta.url).href)
  })
  const now = { seconds: performance.now() / 1000, processorSeconds: processorSeconds() }
  const times = {
    seconds: now.seconds - before.seconds,
    processorSeconds: now.processorSeconds - before.processorSeconds,
  }
  writeSync(3, `${JSON.stringify({ file, times })}\n`)
  before = now
}
// A file that failed may have left a server open, which would keep the process alive.
setTimeout(() => process.exit(), 10_000).unref()

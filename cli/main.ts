#!/usr/bin/env node
// What stands here runs before anything is known about the runtime, so it imports nothing and uses no syntax
// that an old Node could not parse: a person whose Node is too old gets a sentence and not a stack trace.
const PACKAGE_VERSION = '0.1.0'
const host = globalThis.process
const parts = host.versions.node.split('.')
const isNode = !host.versions.bun && !host.versions.deno
const isTooOld = isNode && (Number(parts[0]) < 22 || (Number(parts[0]) === 22 && Number(parts[1]) < 19))
const argv = host.argv.slice(2)

if (isTooOld) {
  host.stderr.write(
    'error: partner-api needs Node 22.19 or newer, and this is Node ' + host.versions.node + '.\n',
  )
  host.exitCode = 2
} else if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
  // Answered here because scripts and shells ask for it often; Commander alone would take as long as Node.
  host.stdout.write(PACKAGE_VERSION + '\n')
} else {
  start()
}

async function start() {
  if (isNode) {
    const module = await import('node:module')
    // Keeps compiled code, types already stripped, in the user's cache: halves the start of every command.
    module.enableCompileCache()
  }
  const program = await import('./program.ts')
  host.exitCode = await program.run(argv, PACKAGE_VERSION)
}

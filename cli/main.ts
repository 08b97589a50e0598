#!/usr/bin/env node
// This file has no static imports and only syntax that an old Node can parse, so that a Node that is too old prints a
// sentence instead of a stack trace.
const PACKAGE_VERSION = '0.1.0'
const host = globalThis.process
const parts = host.versions.node.split('.')
const isNode = !host.versions.bun && !host.versions.deno
const isTooOld = isNode && (Number(parts[0]) < 22 || (Number(parts[0]) === 22 && Number(parts[1]) < 19))
const argv = host.argv.slice(2)

// A signal without a handler does not end process 1, which the program is in a container. Handlers of a command, which
// are added later, replace these.
if (host.pid === 1) {
  const signals = new Map([['SIGHUP', 1], ['SIGINT', 2], ['SIGTERM', 15]])
  signals.forEach(function (number, signal) {
    host.on(signal, function () {
      if (host.listenerCount(signal) === 1) host.exit(128 + number)
    })
  })
}

if (isTooOld) {
  host.stderr.write(
    'error: partner-api needs Node 22.19 or newer, and this is Node ' + host.versions.node + '.\n',
  )
  host.exitCode = 2
} else if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
  // Scripts call this often, and loading Commander takes as long as starting Node.
  try {
    host.getBuiltinModule('node:fs').writeSync(1, PACKAGE_VERSION + '\n')
  } catch (_error) {
    start() // Says why it cannot be written.
  }
} else {
  start()
}

async function start() {
  if (isNode) {
    const module = await import('node:module')
    // Caches compiled code with types stripped: halves the start of every command.
    module.enableCompileCache()
  }
  const program = await import('./program.ts')
  await program.runProcess(argv, PACKAGE_VERSION)
}

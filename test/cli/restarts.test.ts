/** Two processes that share a port by `serve --reuse-port`, of which each restarts under load, on Node, Bun and Deno. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Test } from 'tap'
import { cleanEnv, ending, MAIN, newFile, startServing, stopServing } from '../support/cli-program.ts'

const bin = (name: string) => fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url))
const runtimes: Readonly<Record<string, readonly string[]>> = {
  Node: [process.execPath, MAIN],
  Bun: [bin('bun'), MAIN],
  Deno: [bin('deno'), 'run', '-A', MAIN],
}

/** A network of its own, in which the kernel passes connections on as docs/deploy.md says. */
const setUp = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req && echo ready && exec cat'
const inNetwork = ['unshare', '--map-root-user', '--net', '--']
const canRestart =
  spawnSync(inNetwork[0]!, [...inNetwork.slice(1), 'sh', '-c', setUp], { input: '' }).status === 0

for (const [name, command] of Object.entries(runtimes)) {
  test(`${name}: no request is lost when each of two processes restarts`, {
    skip: canRestart ? false : 'no network with this setting can be made here',
  }, async (t) => {
    const holder = spawn(inNetwork[0]!, [...inNetwork.slice(1), 'sh', '-c', setUp])
    t.teardown(() => holder.stdin.end())
    await once(holder.stdout, 'data')
    const enter = ['nsenter', '--preserve-credentials', '--user', '--net', `--target=${holder.pid}`, '--']
    await restartEach(t, [...enter, ...command], [...enter, process.execPath])
  })
}

async function restartEach(t: Test, command: readonly string[], node: readonly string[]): Promise<void> {
  const port = 8787
  const url = `sqlite:${newFile()}`
  // From the signal on, each response closes its connection: a client that keeps one has a second to get one.
  const args = ['serve', '--reuse-port', '--port', String(port), '--drain-delay', '1']
  const start = () => startServing(args, url, { command })
  const servers = await Promise.all([start(), start()])
  t.teardown(() => servers.forEach(({ child }) => child.kill('SIGKILL')))
  const load = startLoad(node, port)
  t.teardown(() => load.kill('SIGKILL'))
  const ended = ending(load)
  const lines = createInterface(load.stdout)
  await once(lines, 'line')
  for (const index of servers.keys()) {
    t.match(await stopServing(servers[index]!), { code: 0, signal: null })
    servers[index] = await start()
  }
  load.kill('SIGTERM')
  const { stdout } = await ended
  const { answered, failures } = JSON.parse(stdout.trimEnd().split('\n').at(-1)!)
  t.comment(`${answered} requests`)
  t.same(failures, {})
  t.ok(answered > 100)
}

function startLoad(
  [program = '', ...words]: readonly string[],
  port: number,
): ChildProcessWithoutNullStreams {
  const script = fileURLToPath(new URL('../support/restart-load.ts', import.meta.url))
  return spawn(program, [...words, script, String(port)], { env: cleanEnv() })
}

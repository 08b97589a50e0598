import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { cleanEnv } from '../support/cli-program.ts'
import { binary, run } from './installed.ts'

/** A Worker in a workerd of its own. */
export interface WorkerProcess {
  readonly url: string
  end(): Promise<void>
}

/** What `wrangler.toml` would say of it. */
export interface WorkerSettings {
  /** Text that the Worker finds in its `env`. */
  readonly variables?: Readonly<Record<string, string>>
  /** Class names of Durable Objects by the name that they have in `env`. */
  readonly durableObjects?: Readonly<Record<string, string>>
}

/**
 * Bundles a Worker as Workers are and starts it.
 *
 * @param source Its file, in a project that has what it imports.
 */
export async function startWorker(
  source: string,
  project: string,
  settings: WorkerSettings = {},
): Promise<WorkerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-worker-'))
  const bundle = join(folder, 'worker.js')
  const words = ['--target=browser', '--conditions=workerd', '--format=esm']
  const external = ['--external', 'node:*', '--external', 'cloudflare:*']
  await run(binary('bun'), ['build', source, ...words, ...external, '--outfile', bundle], project)
  writeFileSync(join(folder, 'config.capnp'), configOf(settings))
  const child = spawn(binary('workerd'), ['serve', 'config.capnp', '--control-fd=3'], {
    cwd: folder,
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => said += chunk)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  async function end(): Promise<void> {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  }

  const port = await portOf(child.stdio[3] as Readable)
  if (port !== undefined) return { url: `http://127.0.0.1:${port}`, end }
  await end()
  throw new Error(`workerd does not listen: ${said}`)
}

function configOf({ variables = {}, durableObjects = {} }: WorkerSettings): string {
  const text = JSON.stringify
  const bindings = [
    ...Object.entries(variables).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`),
    ...Object.entries(durableObjects).map(([name, of]) =>
      `(name = ${text(name)}, durableObjectNamespace = ${text(of)})`
    ),
  ]
  const classes = Object.values(durableObjects).map((of) =>
    `(className = ${text(of)}, uniqueKey = ${text(of)})`
  )
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [
    # As Cloudflare does: what a client says of its address is replaced by what it is.
    (name = "main", address = "127.0.0.1:0", service = "main",
     http = (injectRequestHeaders = [(name = "CF-Connecting-IP", value = "127.0.0.1")])),
  ]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-08-04",
  bindings = [${bindings.join(', ')}],
  durableObjectNamespaces = [${classes.join(', ')}],
  durableObjectStorage = (inMemory = void),
);
`
}

/** Where it listens; nothing when it ends before. */
async function portOf(control: Readable): Promise<number | undefined> {
  for await (const line of createInterface({ input: control })) {
    const { event, port } = JSON.parse(line)
    if (event === 'listen') return port
  }
  return undefined
}

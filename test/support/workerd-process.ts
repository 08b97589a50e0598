import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { binary, run } from '../package/installed.ts'
import { cleanEnv } from './cli-program.ts'

/** A Worker in its own workerd process. */
export interface WorkerProcess {
  readonly url: string
  /** Sends a value to the entrypoint `operator`. @returns The `value` in its response. */
  callOperator(what: object): Promise<unknown>
  end(): Promise<void>
}

/** What `wrangler.toml` would contain. */
export interface WorkerSettings {
  /** Text that the Worker finds in its `env`. */
  readonly variables?: Readonly<Record<string, string>>
  /** Class names of Durable Objects by the name that they have in `env`. */
  readonly durableObjects?: Readonly<Record<string, string>>
  /** Whether it has an entrypoint `operator`, with its own socket. */
  readonly hasOperator?: boolean
}

/**
 * Bundles a Worker and starts it in workerd.
 *
 * @param source The file of the Worker, in a project with its dependencies.
 */
export async function startWorker(
  source: string,
  project: string,
  settings: WorkerSettings = {},
): Promise<WorkerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-worker-'))
  const words = ['--target=browser', '--conditions=workerd', '--format=esm']
  const external = ['--external', 'node:*', '--external', 'cloudflare:*']
  const bundle = join(folder, 'worker.js')
  await run(binary('bun'), ['build', source, ...words, ...external, '--outfile', bundle], project)
  writeFileSync(join(folder, 'config.capnp'), configOf(settings))
  const child = spawn(binary('workerd'), ['serve', 'config.capnp', '--control-fd=3'], {
    cwd: folder,
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => output += chunk)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ports = await portsOf(child.stdio[3] as Readable, settings.hasOperator ? 2 : 1)
  const urlOf = (socket: string): string => `http://127.0.0.1:${ports.get(socket)}`
  const worker: WorkerProcess = {
    url: urlOf('main'),
    async callOperator(what) {
      const body = JSON.stringify(what)
      const answer = await fetch(urlOf('operator'), { method: 'POST', body })
      if (!answer.ok) throw new Error(`${body.slice(0, 200)}: ${output}`)
      return (await answer.json() as { readonly value: unknown }).value
    },
    async end() {
      // SIGTERM would wait for pending requests.
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
  if (ports.has('main')) return worker
  await worker.end()
  throw new Error(`workerd does not listen: ${output}`)
}

function configOf({ variables = {}, durableObjects = {}, hasOperator = false }: WorkerSettings): string {
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
  const operator =
    '(name = "operator", address = "127.0.0.1:0", service = (name = "main", entrypoint = "operator"), http = ()),'
  // The date is the first on which Workers have node:crypto by default; before, `nodejs_compat` enables it.
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [
    ${hasOperator ? operator : ''}
    # Like Cloudflare, overrides the address that a client claims.
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

/** The ports of `count` sockets by name, once they listen; fewer if workerd ends before. */
async function portsOf(control: Readable, count: number): Promise<ReadonlyMap<string, number>> {
  const ports = new Map<string, number>()
  for await (const line of createInterface({ input: control })) {
    const { event, socket, port } = JSON.parse(line)
    if (event === 'listen') ports.set(socket, port)
    if (ports.size === count) break
  }
  return ports
}

import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { cleanEnv } from '../support/cli-program.ts'

/** workerd in a process of its own, with a Worker in it that has one entrypoint for partners and one for its operator. */
export interface WorkerdProcess {
  /** Where partners are answered. */
  readonly origin: string
  /** Tells the operator's entrypoint something plain. @returns What it answers. */
  tell(what: object): Promise<unknown>
  end(): Promise<void>
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const binary = (name: string): string => join(root, 'test/node_modules/.bin', name)

/**
 * The first day on which Workers have node:crypto unless they say otherwise; before, `nodejs_compat` asks for it. Who
 * asks for a Durable Object has Postgres in it, which is reached over a network.
 */
const configFor = (hasDurableObject: boolean): string =>
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["${hasDurableObject ? 'private' : 'public'}"])),
  ],
  sockets = [
    (name = "operator", address = "127.0.0.1:0", service = (name = "main", entrypoint = "operator"), http = ()),
    # As Cloudflare does: what a client says of its address is replaced by what it is.
    (name = "partners", address = "127.0.0.1:0", service = "main",
     http = (injectRequestHeaders = [(name = "CF-Connecting-IP", value = "127.0.0.1")])),
  ]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-08-04",${hasDurableObject ? durableObject : ''}
);
`
const durableObject = `
  bindings = [(name = "SERVICE", durableObjectNamespace = "Service")],
  durableObjectNamespaces = [(className = "Service", uniqueKey = "partner-api")],
  durableObjectStorage = (inMemory = void),`

/** Bundles a Worker of this folder and starts it. */
export async function startWorkerdProcess(
  file: 'worker.ts' | 'durable-worker.ts',
): Promise<WorkerdProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-workerd-'))
  bundle(file, join(folder, 'worker.js'))
  const config = join(folder, 'worker.capnp')
  writeFileSync(config, configFor(file === 'durable-worker.ts'))
  const child = spawn(binary('workerd'), ['serve', config, '--control-fd=3'], {
    env: cleanEnv(),
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  let complaints = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => complaints += text)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ports = await portsOf(child.stdio[3] as Readable, 2)
  if (ports.size < 2) throw new Error(`workerd does not listen: ${complaints}`)
  return {
    origin: `http://127.0.0.1:${ports.get('partners')}`,
    async tell(what) {
      const answer = await fetch(`http://127.0.0.1:${ports.get('operator')}`, {
        method: 'POST',
        body: JSON.stringify(what),
      })
      if (!answer.ok) throw new Error(`${JSON.stringify(what).slice(0, 200)}: ${complaints}`)
      return (await answer.json() as { readonly value: unknown }).value
    },
    async end() {
      // It would wait for requests under way, and may be what they wait for.
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

function bundle(program: string, file: string): void {
  const entry = fileURLToPath(new URL(program, import.meta.url))
  const { status, stderr } = spawnSync(binary('bun'), [
    ...['build', entry, '--target=browser', '--format=esm', '--conditions', 'workerd'],
    ...['--external', 'node:*', '--external', 'cloudflare:*', '--outfile', file],
  ], { cwd: root, env: cleanEnv(), encoding: 'utf8' })
  if (status !== 0) throw new Error(`The Worker was not bundled: ${stderr}`)
}

/** The ports of the first `count` sockets that begin to listen, by name; fewer when the program ends before. */
async function portsOf(control: Readable, count: number): Promise<ReadonlyMap<string, number>> {
  const ports = new Map<string, number>()
  for await (const line of createInterface({ input: control })) {
    const { event, socket, port } = JSON.parse(line)
    if (event === 'listen') ports.set(socket, port)
    if (ports.size === count) break
  }
  return ports
}

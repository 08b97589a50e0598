import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { sha256 } from '../../adapters/digest.ts'
import type { PartnerApiOptions } from '../../core/api.ts'
import type { Store, StoreSettings } from '../../core/ports.ts'
import { cleanEnv } from '../contract/cli-program.ts'
import type { Template } from './template.ts'
import type { Wish } from './worker.ts'

/** workerd in a process of its own, with `worker.ts` in it. */
export interface Workerd {
  /** Where all of its services are; the name of the host tells them apart. */
  readonly origin: string
  /** Makes a store that is like another one. */
  open(name: string, template: Pick<Template, 'settings' | 'writes'>): Promise<Store>
  /** Serves a store under its name. */
  start(name: string, options: PartnerApiOptions, revisionTakesMs?: number): Promise<void>
  close(name: string): Promise<void>
  end(): Promise<void>
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const binary = (name: string): string => join(root, 'node_modules/.bin', name)

/** The first day on which Workers have node:crypto unless they say otherwise; before, `nodejs_compat` asks for it. */
const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [
    (name = "operator", address = "127.0.0.1:0", service = (name = "main", entrypoint = "operator"), http = ()),
    # As Cloudflare does: what a client says of its address is replaced by what it is.
    (name = "partners", address = "127.0.0.1:0", service = "main",
     http = (injectRequestHeaders = [(name = "CF-Connecting-IP", value = "127.0.0.1")])),
  ]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-08-04",
);
`

/** Bundles the Worker and starts it. */
export async function startWorkerd(): Promise<Workerd> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-workerd-'))
  bundle(join(folder, 'worker.js'))
  const file = join(folder, 'worker.capnp')
  writeFileSync(file, config)
  const child = spawn(binary('workerd'), ['serve', file, '--control-fd=3'], {
    env: cleanEnv(),
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  let complaints = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => complaints += text)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ports = await portsOf(child.stdio[3] as Readable, 2)
  if (ports.size < 2) throw new Error(`workerd does not listen: ${complaints}`)

  async function wish(what: Wish): Promise<unknown> {
    const answer = await fetch(`http://127.0.0.1:${ports.get('operator')}`, {
      method: 'POST',
      body: JSON.stringify(what),
    })
    if (!answer.ok) throw new Error(`${JSON.stringify(what).slice(0, 200)}: ${complaints}`)
    return (await answer.json() as { readonly value: unknown }).value
  }

  return {
    origin: `http://127.0.0.1:${ports.get('partners')}`,
    async open(name, { settings, writes }) {
      await wish({ open: name, settings, writes })
      return remoteStore(name, wish, settings)
    },
    start: async (name, options, revisionTakesMs = 0) =>
      void await wish({ start: name, options, revisionTakesMs }),
    close: async (name) => void await wish({ close: name }),
    async end() {
      // It would wait for requests under way, and may be what they wait for.
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

/** The memory store's own methods, called where it is. */
function remoteStore(name: string, wish: (what: Wish) => Promise<unknown>, settings: StoreSettings): Store {
  const methods = Object.entries(createMemoryStore()).filter(([, member]) => typeof member === 'function')
  const calls = methods.map(([method]) => [
    method,
    (...words: unknown[]) => wish({ call: name, method, words }),
  ])
  return { ...Object.fromEntries(calls), settings, sha256 }
}

function bundle(file: string): void {
  const entry = fileURLToPath(new URL('worker.ts', import.meta.url))
  const words = [
    'build',
    entry,
    '--target=browser',
    '--format=esm',
    '--external',
    'node:*',
    '--outfile',
    file,
  ]
  const { status, stderr } = spawnSync(binary('bun'), words, { cwd: root, env: cleanEnv(), encoding: 'utf8' })
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

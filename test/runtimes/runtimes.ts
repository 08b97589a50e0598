import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Quirk } from '../contract/http/service.ts'

/** A runtime and its quirks. */
export interface Runtime {
  readonly name: string
  readonly quirks: readonly Quirk[]
}

/** A runtime with files and sockets. */
export interface Program extends Runtime {
  /** The program and its arguments before the script. */
  readonly command: readonly string[]
}

const binary = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
// Disables warnings about experimental type stripping and node:sqlite.
const quiet = '--disable-warning=ExperimentalWarning'

/** All runtimes with files and sockets, as installed by npm. */
export const RUNTIMES: readonly Program[] = [
  { name: 'Node 22', command: [binary('test/node-22/node_modules/.bin/node'), quiet], quirks: [] },
  { name: 'Node 24', command: [binary('test/node-24/node_modules/.bin/node'), quiet], quirks: [] },
  { name: 'Node 26', command: [binary('node_modules/.bin/node')], quirks: [] },
  { name: 'Bun', command: [binary('test/node_modules/.bin/bun')], quirks: ['resolves-targets'] },
  {
    name: 'Deno',
    command: [binary('test/node_modules/.bin/deno'), 'run', '-A', '-q'],
    quirks: [],
  },
]

/** Whether it is a Node older than the one of `test/node`. It runs the same code, so only what Node provides differs. */
export const isOlderNode = ({ name }: Runtime): boolean => /^Node 2[24]$/.test(name)

/** The runtime of Cloudflare Workers. */
export const WORKERD: Runtime = {
  name: 'workerd',
  quirks: ['resolves-targets', 'no-trace', 'knows-few-methods'],
}

/** Why a runtime cannot be tested, if npm has no build for this machine. */
export function absence({ name, command: [program = ''] }: Program): string | undefined {
  return existsSync(program) ? undefined : `npm did not install ${name} on this machine`
}

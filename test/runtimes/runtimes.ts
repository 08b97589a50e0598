import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Quirk } from '../contract/http/quirks.ts'

/** A runtime, and where it differs. */
export interface Runtime {
  readonly name: string
  readonly quirks: readonly Quirk[]
}

/** A runtime that has files and sockets. */
export interface Program extends Runtime {
  /** Its program, and the arguments before the name of a script. */
  readonly command: readonly string[]
}

const binary = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
// They call stripped types and node:sqlite experimental.
const quiet = '--disable-warning=ExperimentalWarning'

/** All that have, each as npm installs it. */
export const RUNTIMES: readonly Program[] = [
  { name: 'Node 22', command: [binary('test/node-22/node_modules/.bin/node'), quiet], quirks: [] },
  { name: 'Node 24', command: [binary('test/node-24/node_modules/.bin/node'), quiet], quirks: [] },
  { name: 'Node 26', command: [binary('node_modules/.bin/node')], quirks: [] },
  { name: 'Bun', command: [binary('test/node_modules/.bin/bun')], quirks: ['resolves-targets'] },
  {
    name: 'Deno',
    command: [binary('test/node_modules/.bin/deno'), 'run', '-A', '-q'],
    quirks: ['names-some-countries'],
  },
]

/** What Cloudflare runs Workers on. */
export const WORKERD: Runtime = {
  name: 'workerd',
  quirks: ['resolves-targets', 'no-trace', 'knows-few-methods', 'names-some-countries'],
}

/** Why a runtime can't be tried, if so: npm installs the ones that there are for this machine. */
export function absence({ name, command: [program = ''] }: Program): string | undefined {
  return existsSync(program) ? undefined : `npm has installed no ${name} on this machine`
}

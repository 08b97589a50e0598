/** Runs programs where nothing else of the checkout can be found. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { cleanEnv, type Ended, ending } from '../support/cli-program.ts'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

export interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

export const MANIFEST: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Runs a program to its end. @throws with its output if it fails. */
export async function run(
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<Ended> {
  const ended = await attempt(program, args, cwd)
  if (ended.code === 0) return ended
  throw new Error(`${program} ${args.join(' ')}: ${ended.code}\n${ended.stdout}${ended.stderr}`)
}

/** Runs a program to its end, whatever its exit code. */
export function attempt(
  program: string,
  args: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const env = cleanEnv(more)
  // npm passes its own settings to the programs it runs, and another npm would apply them.
  for (const name of Object.keys(env)) if (/^(?:npm_|NODE_COMPILE_CACHE$|TAP)/.test(name)) delete env[name]
  env['PATH'] = [dirname(process.execPath), env['PATH']].join(delimiter)
  const child = spawn(program, args, { cwd, env })
  child.stdin.end()
  return ending(child)
}

/** The path of a program in the test tools. */
export function binary(name: string): string {
  return join(ROOT, 'test/node_modules/.bin', name)
}

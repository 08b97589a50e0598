/** The command-line program: in this process, or as its users meet it, in one of its own. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { run } from '../../cli/program.ts'

/** What is left of a process that has ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** How a process is started. */
export interface Start {
  readonly env?: Readonly<Record<string, string>>
  /** Standard input; none by default. */
  readonly input?: string | Uint8Array
  readonly cwd?: string
  /** Arguments of Node itself. */
  readonly nodeArguments?: readonly string[]
}

/** Path of the program. */
export const MAIN: string = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

const { version: VERSION } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/** Has the program's machine be ahead by so many milliseconds, or behind. */
export function clockAhead(ms: number): Pick<Start, 'nodeArguments'> {
  const code = `const now = Date.now; Date.now = () => now() + ${ms}`
  return { nodeArguments: ['--import', `data:text/javascript,${encodeURIComponent(code)}`] }
}

/** A folder of a test's own, and how to clear it away. */
export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'partner-api-cli-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** An environment with nothing in it that would change what the program does. */
export function cleanEnv(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, FORCE_COLOR: _color, npm_lifecycle_event: _event, ...env } = process.env
  for (const name of Object.keys(env)) {
    if (/^PARTNER_API_|^(https?|no)_proxy$|^(port|host)$/i.test(name)) delete env[name]
  }
  return { ...env, ...more }
}

/** Starts the program and leaves it running. */
export function startProgram(args: readonly string[], start: Start = {}): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [...start.nodeArguments ?? [], MAIN, ...args], {
    env: cleanEnv(start.env),
    cwd: start.cwd,
  })
  // The program may have ended before it has read what it is given.
  child.stdin.on('error', () => {})
  child.stdin.end(start.input ?? '')
  return child
}

/** Runs the program to its end in this process, which is twenty times as fast as in one of its own. */
export async function runProgram(
  args: readonly string[],
  { env, input = '' }: Start & { readonly cwd?: never; readonly nodeArguments?: never } = {},
): Promise<Ended> {
  const output = { stdout: '', stderr: '' }
  const collect = (name: keyof typeof output) =>
    new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        output[name] += chunk
        done()
      },
    })
  const code = await run(args, VERSION, {
    env: cleanEnv(env),
    stdin: Readable.from([Buffer.from(input)]),
    stdout: collect('stdout'),
    stderr: collect('stderr'),
  })
  return { code, signal: null, ...output }
}

/** Runs the program to its end in a process of its own. */
export function runProcess(args: readonly string[], start: Start = {}): Promise<Ended> {
  return ending(startProgram(args, start))
}

/** Collects what a process writes until it ends. */
export function ending(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (text: string) => output[name] += text)
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...output }))
  })
}

/** The one JSON document of a run with `--json`. */
export function documentOf(ended: Ended): {
  // deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
  readonly data: any
  readonly error: { readonly code: string; readonly detail: string } & Record<string, unknown>
  /** Under `--wait`. */
  readonly receipt: {
    readonly ms: number
    readonly replicas: readonly {
      readonly name: string
      readonly applied: boolean
      readonly ms: number
      readonly clock_skew_ms?: number
    }[]
  }
} {
  return JSON.parse(ended.stdout)
}

/** The program on one store. */
export function programOn(store: string) {
  const run = (...args: string[]): Promise<Ended> => runProgram(args, { env: { PARTNER_API_STORE: store } })
  const json = async (...args: string[]) => {
    const ended = await run(...args, '--json')
    return { ...ended, ...documentOf(ended) }
  }
  return {
    run,
    json,
    /** Compares exit and error codes, such as `1 key_not_found`, of commands without spaces in their arguments. */
    async refuses(t: Test, expected: Readonly<Record<string, string>>): Promise<void> {
      const outcomes = await Promise.all(
        Object.keys(expected).map(async (command) => {
          const { code, error } = await json(...command.split(' '))
          return [command, `${code} ${error?.code}`]
        }),
      )
      t.same(Object.fromEntries(outcomes), expected)
    },
  }
}

/** Runs a program on a terminal, and types when it shows `prompt`. @returns What the terminal shows. */
export async function runOnTerminal(
  command: string,
  env: Readonly<Record<string, string>>,
  prompt: string,
  typed: string,
): Promise<string> {
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: cleanEnv({ ...env, TERM: 'xterm', SHELL: '/bin/sh' }),
    stdio: 'pipe',
  })
  const ended = ending(child)
  child.stdout.on('data', (text: string) => {
    if (text.includes(prompt)) child.stdin.write(typed)
  })
  return (await ended).stdout
}

/** Why there is no terminal on this machine, as `skip` has it. */
export const noTerminal: string | false = spawnSync('script', ['--version']).status === 0
  ? false
  : 'there is no script(1) to make a terminal with'

/** A program that serves. */
export interface Served {
  readonly child: ChildProcessWithoutNullStreams
  readonly url: string
  readonly ended: Promise<Ended>
  /** What stood on standard error when the service began to listen. */
  readonly words: string
}

/** Starts the program and waits until it says where it listens. */
export async function startServing(
  args: readonly string[],
  store: string,
  start: Start = {},
): Promise<Served> {
  const child = startProgram(args, { ...start, env: { ...start.env, PARTNER_API_STORE: store } })
  const ended = ending(child)
  let words = ''
  child.stderr.on('data', (text: string) => words += text)
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(({ stderr }) => Promise.reject(new Error(`ended before it listened: ${stderr}`))),
  ])
  const url = line.startsWith('{') ? JSON.parse(line).data.url : line.replace(/^listening on /, '')
  return { child, url, ended, words }
}

/** Asks a program that serves to end, and waits for it. */
export async function stopServing(
  { child, ended }: Served,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<Ended> {
  child.kill(signal)
  return await ended
}

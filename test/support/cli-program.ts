/** Runs the command-line program in this process or in a child process. */
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

/** The result of a run. */
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
  /** In this process only: both outputs are a terminal of this width. */
  readonly columns?: number
  /** The command that starts the program, by default this Node. */
  readonly command?: readonly string[]
  /** Arguments of Node itself. */
  readonly nodeArguments?: readonly string[]
}

/** How the program is started in this process. */
export type InProcess = Pick<Start, 'env' | 'input' | 'columns'>

/** Path of the program. */
export const MAIN: string = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

const { version: VERSION } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/** Runs JavaScript before the program. */
export function preload(code: string): Pick<Start, 'nodeArguments'> {
  return { nodeArguments: ['--import', `data:text/javascript,${encodeURIComponent(code)}`] }
}

/** Sets the program's clock ahead by this many milliseconds; negative values set it back. */
export const clockAhead = (ms: number): Pick<Start, 'nodeArguments'> =>
  preload(`const now = Date.now; Date.now = () => now() + ${ms}`)

const folders: string[] = []
process.on('exit', () => {
  for (const path of folders) rmSync(path, { recursive: true, force: true })
})

/** Creates a folder that is removed when this process ends. */
export function temporaryFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'partner-api-cli-'))
  folders.push(path)
  return path
}

/** The path of a new SQLite file. */
export function newFile(): string {
  return join(temporaryFolder(), 'store.db')
}

/** The environment without variables that affect the program. */
export function cleanEnv(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const {
    NODE_OPTIONS: _options,
    FORCE_COLOR: _color,
    NO_COLOR: _noColor,
    npm_lifecycle_event: _event,
    ...env
  } = process.env
  for (const name of Object.keys(env)) {
    if (/^PARTNER_API_|^(https?|no)_proxy$|^(port|host)$/i.test(name)) delete env[name]
  }
  return { ...env, ...more }
}

/** Starts the program and leaves it running. */
export function startProgram(args: readonly string[], start: Start = {}): ChildProcessWithoutNullStreams {
  const [program = '', ...flags] = start.command ?? [process.execPath, ...start.nodeArguments ?? [], MAIN]
  const child = spawn(program, [...flags, ...args], {
    env: cleanEnv(start.env),
    cwd: start.cwd,
  })
  // The program may end before reading its input.
  child.stdin.on('error', () => {})
  child.stdin.end(start.input ?? '')
  return child
}

/** Runs the program to its end in this process, which is twenty times as fast as in a child. */
export async function runProgram(
  args: readonly string[],
  { env, input = '', columns }: InProcess = {},
): Promise<Ended> {
  const output = { stdout: '', stderr: '' }
  const terminal = columns === undefined ? {} : { isTTY: true, columns }
  const collect = (name: keyof typeof output) => {
    const stream = new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        output[name] += chunk
        done()
      },
    })
    return Object.assign(stream, terminal)
  }
  const code = await run(args, VERSION, {
    env: cleanEnv(env),
    stdin: Readable.from([Buffer.from(input)]),
    stdout: collect('stdout'),
    stderr: collect('stderr'),
  })
  return withoutSecrets(args, { code, signal: null, ...output })
}

const issued = new Set<string>()

/** Fails when a run prints a key, unless it is the one that makes it. */
function withoutSecrets(args: readonly string[], ended: Ended): Ended {
  const printed = (ended.stdout + ended.stderr).match(/\b[a-z][a-z0-9]+_(?:live|test)_\w{12}_\w{38}\b/g) ?? []
  for (const key of new Set(printed)) {
    if (issued.has(key)) throw new Error(`${args.join(' ')} printed a key that another command issued`)
    if (args.some((word) => /^(?:issue|rotate|demo)$/.test(word))) issued.add(key)
  }
  return ended
}

/** Runs the program to its end in a child process. */
export function runProcess(args: readonly string[], start: Start = {}): Promise<Ended> {
  return ending(startProgram(args, start)).then((ended) => withoutSecrets(args, ended))
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
export function programOn(store: string, { env, ...start }: InProcess = {}) {
  const run = (...args: string[]): Promise<Ended> =>
    runProgram(args, { ...start, env: { PARTNER_API_STORE: store, ...env } })
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

/** Why terminals cannot be tested on this machine, for `skip`. */
export const noTerminal: string | false = spawnSync('script', ['--version']).status === 0
  ? false
  : 'script(1) is not installed'

/** A running server. */
export interface Served {
  readonly child: ChildProcessWithoutNullStreams
  readonly url: string
  readonly ended: Promise<Ended>
  /** Standard error until the server listened. */
  readonly words: string
}

/** Starts a server and waits until it listens. */
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

/** Stops a server and waits for its end. */
export async function stopServing(
  { child, ended }: Served,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<Ended> {
  child.kill(signal)
  return await ended
}

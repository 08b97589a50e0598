/** A project that uses the package, in which tests run the examples. */
import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { MANIFEST, ROOT } from '../package/installed.ts'
import { freePort } from '../postgres/free-port.ts'
import { cleanEnv, programOn } from '../support/cli-program.ts'
import type { Mounted } from './mounted.ts'

export const EXAMPLES: string = join(ROOT, 'examples')

export interface Project {
  /** Fills a store with the sample content. @returns The key of the partner `demo`. */
  fill(store: string): Promise<string>
  /** Creates a folder for one example, with a filled store. */
  open(name: string): Promise<{ readonly folder: string; readonly key: string }>
  remove(): void
}

/** The command line. */
export const MAIN: string = join(ROOT, 'cli/main.ts')

/** The URL of the default store of a folder. */
export const storeIn = (folder: string): string => `sqlite:${join(folder, 'partner-api.db')}`

const peers = ['express', 'fastify', 'hono', '@hono']

/**
 * The packages are the sources under their names: `test/package` tests that what npm installs is the same.
 * @param more Further packages of the tests that it can import.
 */
export async function createProject(more: readonly string[] = []): Promise<Project> {
  const home = mkdtempSync(join(tmpdir(), 'partner-api-project-'))
  const link = (target: string, path: string) => {
    mkdirSync(join(home, 'node_modules', path, '..'), { recursive: true })
    symlinkSync(target, join(home, 'node_modules', path))
  }
  writeFileSync(join(home, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n')
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'deno.json'), 'utf8'))
  const packages = { 'partner-api': exports, 'partner-api-client': './adapters/client/mod.ts' }
  for (const [name, exports] of Object.entries(packages)) {
    for (const folder of ['core', 'adapters']) link(join(ROOT, folder), `${name}/${folder}`)
    const manifest = { name, type: 'module', exports }
    writeFileSync(join(home, 'node_modules', name, 'package.json'), JSON.stringify(manifest))
  }
  for (const name of Object.keys(MANIFEST.dependencies)) link(join(ROOT, 'node_modules', name), name)
  for (const peer of [...peers, ...more]) {
    const own = join(ROOT, 'test/embedding/node_modules', peer)
    link(existsSync(own) ? own : join(ROOT, 'test/node_modules', peer), peer)
  }

  const fill = async (store: string): Promise<string> =>
    (await programOn(store).json('demo', '--no-serve')).data.key

  const template = join(home, 'template')
  mkdirSync(template)
  const key = await fill(storeIn(template))
  cpSync(EXAMPLES, template, { recursive: true })

  return {
    fill,
    open(name) {
      const folder = join(home, name)
      cpSync(template, folder, { recursive: true })
      return Promise.resolve({ folder, key })
    },
    remove: () => rmSync(home, { recursive: true }),
  }
}

/** A running example. */
export interface Running extends Pick<Mounted, 'url'> {
  said(): string
  /** Ends it, as a supervisor does by default. @returns Its exit code. */
  stop(signal?: 'SIGTERM' | 'SIGINT'): Promise<number | null>
}

/** Runs an example until the test ends. Resolves once the example prints that it listens. */
export async function start(
  t: Test,
  folder: string,
  [program = '', ...words]: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const port = await freePort()
  const child = spawn(program, words, {
    cwd: folder,
    env: cleanEnv({ ...env, PORT: String(port), NO_COLOR: '1' }),
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (/ready|Listening|Development Server .* started/.test(said)) resolve()
      })
    }
    void ended.then(() => reject(new Error(`${words.join(' ')} ended: ${said}`)))
  })
  const stop = (signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  return { url: `http://127.0.0.1:${port}`, said: () => said, stop }
}

/** Writes a file beside an example. */
export function write(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

/**
 * Mutation testing, on demand: `npm run mutation -- [ROOM…]`. StrykerJS changes the source of a room in hundreds of small
 * ways ("mutants") and runs the room's tests on each one. A mutant that no test notices is a missing test, or code that
 * makes no difference. The first run installs StrykerJS into test/mutation.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { SuiteName } from '../contract/http/suites.ts'

interface Room {
  readonly mutate: string
  /** Fastest first: the first failing test ends a mutant. */
  readonly tests: readonly string[]
  /** The suites of the contract that concern it, default all. Some wait for seconds. */
  readonly suites?: readonly SuiteName[]
}

const contract = 'test/mutation/contract.ts'
const core = (...names: string[]) => names.map((name) => `test/core/${name}.test.ts`)

const messages = [
  'conventions',
  'paths',
  'negotiation',
  'credentials',
  'bodies',
  'caching',
  'failures',
  'reference',
] as const satisfies readonly SuiteName[]

const ROOMS: Readonly<Record<string, Room>> = {
  policy: { mutate: 'core/policy/*.ts', tests: ['test/mutation/policy.ts'] },
  keys: {
    mutate: 'core/keys/*.ts',
    tests: [...core('usage', 'properties', 'admin', 'key-lookups'), contract],
  },
  limits: {
    mutate: 'core/limits/*.ts',
    tests: [...core('limits', 'key-lookups'), contract],
  },
  cache: {
    mutate: 'core/cache/*.ts',
    tests: core('revision-cache', 'response-cache', 'resilience'),
  },
  http: {
    mutate: 'core/http/*.ts',
    tests: [
      ...core('http', 'fetch-request', 'ip-address', 'properties'),
      contract,
      ...core('responses', 'fetch'),
    ],
    suites: [...messages, 'order', 'secrets', 'verify-key', 'signups'],
  },
  pipeline: {
    mutate: 'core/{pipeline,authenticate-request,public-endpoints}.ts',
    tests: [...core('pipeline'), contract, ...core('resilience')],
    suites: [...messages, 'order', 'secrets', 'verify-key', 'signups', 'limits', 'administration'],
  },
  admin: { mutate: 'core/admin/*.ts', tests: core('admin') },
}

const home = fileURLToPath(new URL('.', import.meta.url))
const stryker = join(home, 'node_modules/@stryker-mutator/core/bin/stryker.js')
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(ROOMS)
const unknown = names.find((name) => !Object.hasOwn(ROOMS, name))
if (unknown !== undefined) {
  console.error(
    `There is no room ${JSON.stringify(unknown)}. The rooms are ${Object.keys(ROOMS).join(', ')}.`,
  )
  process.exit(2)
}

if (!existsSync(stryker)) run('npm', ['ci', '--no-audit', '--no-fund'], home)
for (const { mutate, tests, suites } of names.map((name) => ROOMS[name]!)) {
  run(process.execPath, [stryker, 'run', join(home, 'stryker.config.mjs')], join(home, '../..'), {
    MUTATE: mutate,
    TEST_FILES: tests.join(','),
    ...suites && { SUITES: suites.join(',') },
    TAP: '1',
    // Seconds. StrykerJS has a limit of its own, and its processes run for long.
    TAP_TIMEOUT: '86400',
    NODE_COMPILE_CACHE: join(home, 'node_modules/.cache/node'),
  })
}

function run(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): void {
  const shell = program === 'npm' && process.platform === 'win32'
  const { status } = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: 'inherit',
    shell,
  })
  if (status !== 0) process.exit(status ?? 2)
}

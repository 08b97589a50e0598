/**
 * `node test/run.ts [WORD…]` runs the test files of `npm test` with one of the words in their path, without words all of
 * them. `node test/run.ts --all [WORD…]` adds the parts of `parts.ts`, each of which is a word, too.
 *
 * `together.ts` runs them, small ones several in a process. tap's own runner would wrap each child, and all that a test
 * spawns, in its module hooks, NODE_OPTIONS and FORCE_COLOR, and keep what a program wrote before it crashed to itself.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { Parser, type Result } from 'tap-parser'
import { missingPackages, partOf, PARTS } from './parts.ts'
import { hasServer } from './postgres/binaries.ts'
import { type ServerOptions, SHARED_SERVER, startServer } from './postgres/server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
// Files that wait leave a processor idle.
const jobs = 3 * Math.min(availableParallelism(), 4)
// Bounds what hangs. On a busy machine, files take several times what they take on a quiet one.
const timeoutSeconds = 1200
const cache = join(root, 'test/node_modules/.cache')
const timesFile = join(cache, 'times.json')
// What a developer has set for a store, a server, or Node is not for the tests.
const inherited = Object.entries(process.env).filter(([name]) =>
  !/^(PARTNER_API_.*|PG[A-Z]+|PORT|HOST|NODE_OPTIONS|FORCE_COLOR|NO_COLOR)$/.test(name)
)
const env = {
  ...Object.fromEntries(inherited),
  TAP: '1',
  TAP_TIMEOUT: String(timeoutSeconds),
  // Stripped types are kept too: a third of a small test's time.
  NODE_COMPILE_CACHE: join(cache, 'node'),
}
const together = fileURLToPath(new URL('together.ts', import.meta.url))
/** One PostgreSQL server for all files, each of which has databases of its own there. */
const sharedServer: ServerOptions = { settings: { max_connections: '400' } }
const running = new Set<() => void>()

/** At most so many small files run one after the other in one process. */
const filesTogether = 6
/** Files of `npm test` that are long, or change or measure their process. Those of parts have one, too. */
const alone = [
  'adapters/client-requests',
  'adapters/node-connections',
  'adapters/webhooks',
  'cli/backup',
  'cli/doctor',
  'cli/erasure',
  'cli/help',
  'cli/linear',
  'cli/many-keys',
  'cli/plan',
  'cli/postgres',
  'cli/restore',
  'cli/serve',
  'cli/verify-failures',
  'contract/http/node',
  'core/claims',
  'core/clock',
  'core/linear-time',
  'core/partner-quotas',
  'core/replicas',
  'integration/docs-commands',
  'stores/',
]

function needsProcess(file: string): boolean {
  return partOf(file) !== undefined || alone.some((start) => file.startsWith(`test/${start}`))
}

/** How long a file took, and how much of a processor. */
interface Times {
  readonly seconds: number
  readonly processorSeconds: number
}

/** What a test file's program printed. The closing point of a subtest is not counted again. */
export function readTap(output: string) {
  const failures: { name: string; detail: string }[] = []
  const skips: { name: string; reason: string }[] = []
  const noise: string[] = []
  let passed = 0
  const parser = new Parser()
    .on('pass', () => passed++)
    .on('fail', ({ fullname, diag }: Result) => failures.push({ name: fullname, detail: format(diag ?? {}) }))
    .on('skip', ({ fullname, skip }: Result) => skips.push({ name: fullname, reason: String(skip) }))
    .on('todo', ({ fullname, todo }: Result) => skips.push({ name: fullname, reason: `to do: ${todo}` }))
    .on('bailout', (reason: string) => failures.push({ name: 'bail out', detail: reason }))
  const collectNoise = (parser: Parser): unknown =>
    parser.on('extra', (line: string) => noise.push(line.trimEnd())).on('child', collectNoise)
  collectNoise(parser)
  parser.end(output)
  const { ok, count, plan, failures: [fault] } = parser.results!
  if (plan.skipAll && plan.skipReason && plan.skipReason !== 'no tests found') {
    skips.push({ name: 'the whole file', reason: plan.skipReason })
  } else if (failures.length === 0 && (!ok || count === 0)) {
    failures.push({ name: 'the program', detail: `It ended early: ${fault?.tapError ?? 'no test'}.` })
  }
  return { passed, failures, skips, noise }
}

const format = (diagnostics: object): string =>
  Object.entries(diagnostics)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? `\n${indent(value)}` : inspect(value)}`)
    .join('\n')
const indent = (text: string): string => text.trimEnd().replace(/^(?=.)/gm, '        ')

/**
 * The files that words choose: a part by its name, those of all parts by `parts`, and others by a text in their path.
 * `npm test` looks in the parts only for what its own files do not have.
 *
 * @throws {Error} if a word chooses nothing.
 */
export function choose(files: readonly string[], words: readonly string[], isWhole: boolean): string[] {
  const usual = isWhole ? files : files.filter((file) => partOf(file) === undefined)
  if (words.length === 0) return [...usual]
  const chosen = words.flatMap((word) => {
    if (isWhole && word === 'parts') return files.filter((file) => partOf(file) !== undefined)
    if (isWhole && word in PARTS) return files.filter((file) => partOf(file) === word)
    const has = (file: string) => file.includes(word.replace(/^\.\//, ''))
    const found = usual.some(has) ? usual.filter(has) : files.filter(has)
    if (found.length > 0) return found
    const parts = isWhole ? `, and no part has that name. Parts: ${Object.keys(PARTS).join(', ')}` : ''
    throw new Error(`No test file has ${JSON.stringify(word)} in its path${parts}.`)
  })
  return files.filter((file) => chosen.includes(file))
}

/** What `together.ts` printed, by file: each as if it had been alone. */
export function outputsOf(output: string): Map<string, string> {
  const lines = new Map<string, string[]>()
  let file: string | undefined
  for (const line of output.split('\n')) {
    const [, started] = /^# Subtest: (test\/.+)$/.exec(line) ?? []
    if (started !== undefined) lines.set(file = started, ['TAP version 14'])
    else if (file !== undefined && line.startsWith('ok ') || line.startsWith('not ok ')) file = undefined
    else if (file !== undefined) lines.get(file)!.push(line.replace(/^ {4}/, ''))
  }
  return new Map(Array.from(lines, ([file, text]) => [file, `${text.join('\n')}\n`]))
}

interface Outcome extends ReturnType<typeof readTap> {
  readonly file: string
  readonly printed: string
  readonly times: Times
}

/** Runs files in one process. @returns Those that it has begun: a file that ends the process is the last. */
async function run(files: readonly string[]): Promise<Outcome[]> {
  const start = performance.now()
  // An empty working folder: the one of `npm test` may have a store or an environment file.
  const cwd = mkdtempSync(join(tmpdir(), 'partner-api-test-'))
  const child = spawn(process.execPath, [together, ...files], {
    cwd,
    env,
    // A group of its own, so that what a test leaves behind ends with it and cannot hold its output open.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const kill = () => {
    try {
      if (child.pid) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The group has ended.
    }
  }
  running.add(kill)
  let output = ''
  let errors = ''
  let reports = ''
  let problem = ''
  const [, stdout, stderr, report] = child.stdio as Readable[]
  stdout!.setEncoding('utf8').on('data', (text: string) => output += text)
  stderr!.setEncoding('utf8').on('data', (text: string) => errors += text)
  report!.setEncoding('utf8').on('data', (text: string) => reports += text)
  // tap reports a timeout itself, with the test's name; this is for a program that cannot even do that.
  const timer = setTimeout(kill, (timeoutSeconds + 10) * 1000)
  child.on('error', (error) => problem = error.message)
  child.on('exit', (code, signal) => {
    if (code !== 0) problem ||= signal ? `killed by ${signal}` : `exit code ${code}`
    kill()
  })
  await new Promise((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  running.delete(kill)
  rmSync(cwd, { recursive: true, force: true })

  const times = new Map<string, Times>(
    reports.split('\n').filter(Boolean).map((line) => JSON.parse(line)).map((
      each,
    ) => [each.file, each.times]),
  )
  const outputs = outputsOf(output)
  if (outputs.size === 0) outputs.set(files[0]!, output)
  const outcomes = Array.from(outputs, ([file, text]): Outcome => {
    const found = readTap(text)
    const whole = { seconds: (performance.now() - start) / 1000, processorSeconds: 0 }
    const printed = [...found.noise, ...errors.trimEnd().split('\n')].join('\n').trim()
    return { ...found, file, printed, times: times.get(file) ?? whole }
  })
  if (problem && (problem !== 'exit code 1' || outcomes.every(({ failures }) => failures.length === 0))) {
    outcomes.at(-1)!.failures.push({ name: 'the program', detail: `It ended with: ${problem}.` })
  }
  return outcomes
}

/** Says what the parts of the files need and do not find, and installs their packages. */
function prepareParts(files: readonly string[]): void {
  const parts = new Set(files.map(partOf).filter((part) => part !== undefined))
  if (parts.size === 0) return
  for (const part of parts) {
    const missing = missingPackages(PARTS[part]?.needs)
    if (missing.length > 0) {
      console.log(`Some tests of ${part} are skipped. Debian packages that they need: ${missing.join(' ')}`)
    }
  }
  const lab = fileURLToPath(new URL('lab.ts', import.meta.url))
  const { status } = spawnSync(process.execPath, [lab, '--all'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 2)
}

async function main(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      for (const kill of running) kill()
      process.exit(130)
    })
  }
  const args = process.argv.slice(2)
  const isWhole = args[0] === '--all'
  const all = globSync('test/**/*.test.ts', { cwd: root, exclude: (path) => path.includes('node_modules') })
    .map((path) => path.replaceAll('\\', '/')).sort()
  let files: string[]
  try {
    files = choose(all, isWhole ? args.slice(1) : args, isWhole)
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
  prepareParts(files)
  const server = files.length > 1 && hasServer() === undefined ? await startServer(sharedServer) : undefined
  if (server !== undefined) Object.assign(env, { [SHARED_SERVER]: JSON.stringify(server.address) })
  const times: Record<string, Times> = existsSync(timesFile)
    ? JSON.parse(readFileSync(timesFile, 'utf8'))
    : {}
  let passed = 0
  const [skips, failed]: string[][] = [[], []]
  // The longest first, so that no long file runs alone in the end. New ones may be long.
  const length = (file: string) => times[file]?.seconds ?? timeoutSeconds
  const sorted = files.toSorted((a, b) => length(b) - length(a))
  const single = sorted.filter(needsProcess)
  const small = sorted.filter((file) => !needsProcess(file))
  const next = (): string[] => single.length > 0 ? single.splice(0, 1) : small.splice(0, filesTogether)
  await Promise.all(Array.from({ length: jobs }, async () => {
    for (let batch = next(); batch.length > 0; batch = next()) {
      const outcomes = await run(batch)
      single.push(...batch.slice(outcomes.length))
      for (const outcome of outcomes) {
        const { file, failures, printed } = outcome
        times[file] = outcome.times
        passed += outcome.passed
        skips!.push(...outcome.skips.map(({ name, reason }) => `${file} › ${name}: ${reason}`))
        failed!.push(...failures.map(({ name }) => `${file} › ${name}`))
        const counts = `${outcome.passed} passed${failures.length ? `, ${failures.length} failed` : ''}`
        const { seconds, processorSeconds } = outcome.times
        const took = `${seconds.toFixed(2)} s (processor ${processorSeconds.toFixed(2)} s)`
        console.log(`${failures.length ? 'FAIL' : 'ok  '}  ${file}  ${counts}  ${took}`)
        for (const { name, detail } of failures) console.log(`\n      ${name}\n${indent(detail)}`)
        if (printed && (failures.length || files.length === 1)) {
          console.log(`\n      what it printed:\n${indent(printed)}\n`)
        }
      }
    }
  }))
  await server?.close()
  mkdirSync(cache, { recursive: true })
  writeFileSync(timesFile, JSON.stringify(times))
  for (const [title, lines] of [['Skipped', skips!], ['Failed', failed!]] as const) {
    if (lines.length) console.log(`\n${title}:\n${lines.map((line) => `  ${line}`).join('\n')}`)
  }
  console.log(`\n${passed} passed, ${failed!.length} failed, ${skips!.length} skipped`)
  process.exitCode = failed!.length > 0 || passed === 0 ? 1 : 0
}

if (import.meta.main) await main()

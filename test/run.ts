/**
 * Runs every `test/**` file ending in `.test.ts` as the plain Node program that a tap test is, and reads its TAP.
 * tap's own runner would wrap each child, and all that a test spawns, in its module hooks, NODE_OPTIONS and
 * FORCE_COLOR, and keep what a program wrote before it crashed to itself.
 *
 * `node test/run.ts [PART OF A PATH…]`. The closing line counts assertions.
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { readTap } from './read-tap.ts'

type Ending = { output: string; errors: string; problem: string | undefined; seconds: number }

const root = fileURLToPath(new URL('..', import.meta.url))
// Files that wait leave a processor idle: for servers, for time to pass, for other processes.
const jobs = 3 * Math.min(availableParallelism(), 4)
// Bounds what hangs. On a busy machine, the slowest file takes several times what it takes on a quiet one.
const timeoutSeconds = 1200
// tap reports a timeout itself, with the test's name; the kill is for a program that cannot even do that.
const killSeconds = timeoutSeconds + 10

// It lives and dies with the packages.
const cache = join(root, 'test/node_modules/.cache')
const secondsFile = join(cache, 'seconds.json')

const { FORCE_COLOR: _color, NODE_OPTIONS: _options, ...inherited } = process.env
const env = {
  ...inherited,
  TAP: '1',
  TAP_TIMEOUT: String(timeoutSeconds),
  // Stripped types are kept too: a third of a small test's time.
  NODE_COMPILE_CACHE: join(cache, 'node'),
}

const running = new Set<() => void>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const kill of running) kill()
    process.exit(130)
  })
}

buildTap()
const files = choose(process.argv.slice(2))
const totals = { passed: 0, failed: 0, skipped: 0 }
const failedPaths: string[] = []
const skips: string[] = []

const seconds = readSeconds()
// The longest first, so that no long file runs alone in the end. New ones may be long: those of servers and stores, which
// come last in the alphabet, before the others.
const waiting = files.toReversed().sort((a, b) =>
  (seconds[b] ?? timeoutSeconds) - (seconds[a] ?? timeoutSeconds)
)
await Promise.all(Array.from({ length: jobs }, async () => {
  for (let file = waiting.shift(); file; file = waiting.shift()) {
    const ending = await run(file)
    seconds[file] = ending.seconds
    report(file, ending)
  }
}))
mkdirSync(cache, { recursive: true })
writeFileSync(secondsFile, JSON.stringify(seconds))

if (skips.length) console.log(`\nSkipped:\n${skips.map((line) => `  ${line}`).join('\n')}`)
if (failedPaths.length) console.log(`\nFailed:\n${failedPaths.map((line) => `  ${line}`).join('\n')}`)
console.log(`\n${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`)
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0

/** How long each file took when it was run last. */
function readSeconds(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(secondsFile, 'utf8'))
  } catch {
    return {}
  }
}

/**
 * tap's Test class is generated. As npm delivers it, it has the TypeScript plugin, which needs an older compiler and
 * writes NODE_OPTIONS into every test's environment, and plugins that take a third of the start of each test file.
 * `test/.taprc` leaves them out.
 */
function buildTap(): void {
  const manifest = createRequire(import.meta.url).resolve('tap/package.json')
  const generated = createRequire(manifest).resolve('@tapjs/test/built')
  const text = readFileSync(generated, 'utf8')
  const excluded = readFileSync(join(root, 'test/.taprc'), 'utf8').matchAll(/!(@tapjs\/[\w-]+)/g)
  if (!excluded.some(([, plugin]) => text.includes(`require("${plugin}")`))) return
  // Package managers may share files between checkouts, and tap writes into them.
  const folder = join(dirname(generated), '../..')
  cpSync(folder, `${folder}.own`, { recursive: true, verbatimSymlinks: true })
  rmSync(folder, { recursive: true })
  renameSync(`${folder}.own`, folder)
  const bin: string = JSON.parse(readFileSync(manifest, 'utf8')).bin.tap
  const built = spawnSync(process.execPath, [join(dirname(manifest), bin), 'build'], {
    cwd: join(root, 'test'),
    env: { ...inherited },
    encoding: 'utf8',
  })
  if (built.status === 0) return
  console.error(`tap could not be built:\n${built.stdout}${built.stderr}`)
  process.exit(2)
}

function choose(parts: string[]): string[] {
  const all = globSync('test/**/*.test.ts', { cwd: root, exclude: (path) => path.includes('node_modules') })
    .map((path) => path.replaceAll('\\', '/')).sort()
  for (const part of parts) {
    if (all.some((path) => path.includes(part.replace(/^\.\//, '')))) continue
    console.error(`No test file has ${JSON.stringify(part)} in its path.`)
    process.exit(2)
  }
  return parts.length
    ? all.filter((path) => parts.some((part) => path.includes(part.replace(/^\.\//, ''))))
    : all
}

function run(file: string): Promise<Ending> {
  const start = performance.now()
  return new Promise((resolve) => {
    // A group of its own, so that what a test leaves behind ends with it and cannot hold its output open.
    const child = spawn(process.execPath, [file], {
      cwd: root,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const kill = () => {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGKILL')
      } catch {
        child.kill('SIGKILL')
      }
    }
    running.add(kill)
    let output = ''
    let errors = ''
    let problem: string | undefined
    child.stdout.setEncoding('utf8').on('data', (text: string) => output += text)
    child.stderr.setEncoding('utf8').on('data', (text: string) => errors += text)
    const timer = setTimeout(() => {
      problem = `still running after ${killSeconds} seconds`
      kill()
    }, killSeconds * 1000)
    child.on('error', (error) => problem = error.message)
    child.on('exit', (code, signal) => {
      if (code !== 0) problem ??= signal ? `killed by ${signal}` : `exit code ${code}`
      kill()
    })
    child.on('close', () => {
      clearTimeout(timer)
      running.delete(kill)
      resolve({ output, errors, problem, seconds: (performance.now() - start) / 1000 })
    })
  })
}

function report(file: string, ending: Ending): void {
  const tally = readTap(ending.output)
  if (ending.problem && tally.failures.length === 0) {
    tally.failures.push({
      path: 'the program',
      detail: `No test failed, but the program ended with: ${ending.problem}.`,
    })
  }
  const failed = tally.failures.length
  totals.passed += tally.passed
  totals.failed += failed
  totals.skipped += tally.skips.length
  skips.push(...tally.skips.map(({ path, reason }) => `${file} › ${path}: ${reason}`))
  failedPaths.push(...tally.failures.map(({ path }) => `${file} › ${path}`))

  const counts = failed ? `${tally.passed} passed, ${failed} failed` : `${tally.passed} passed`
  const end = ending.problem && ending.problem !== 'exit code 1' ? `  ${ending.problem}` : ''
  console.log(`${failed ? 'FAIL' : 'ok  '}  ${file}  ${counts}  ${ending.seconds.toFixed(2)} s${end}`)
  for (const { path, detail } of tally.failures) console.log(`\n      ${path}\n${indent(detail)}`)
  const said = [...tally.noise, ...ending.errors.trimEnd().split('\n')].join('\n').trim()
  if (said && (failed || files.length === 1)) console.log(`\n      what it printed:\n${indent(said)}`)
  if (failed) console.log('')
}

function indent(text: string): string {
  return text.trimEnd().replace(/^(?=.)/gm, '        ')
}

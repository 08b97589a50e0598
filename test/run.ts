/**
 * `node test/run.ts [PART OF A PATH…]` runs every `test/**` file ending in `.test.ts` as the plain Node program that a
 * tap test is, and counts assertions. tap's own runner would wrap each child, and all that a test spawns, in its module
 * hooks, NODE_OPTIONS and FORCE_COLOR, and keep what a program wrote before it crashed to itself.
 */
import { spawn } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { Parser, type Result } from 'tap-parser'

const root = fileURLToPath(new URL('..', import.meta.url))
// Files that wait leave a processor idle.
const jobs = 3 * Math.min(availableParallelism(), 4)
// Bounds what hangs. On a busy machine, files take several times what they take on a quiet one.
const timeoutSeconds = 1200
const cache = join(root, 'test/node_modules/.cache')
const secondsFile = join(cache, 'seconds.json')
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
// tap's domains track every promise, which takes a sixth of the time of an asynchronous test. Without them, an uncaught error
// ends the program, which has printed it.
const withoutDomains = `data:text/javascript,${
  encodeURIComponent(`
    import hooks from 'node:async_hooks'
    import { syncBuiltinESMExports } from 'node:module'
    hooks.createHook = () => ({ enable() {}, disable() {} })
    syncBuiltinESMExports()`)
}`
const running = new Set<() => void>()

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

function choose(parts: string[]): string[] {
  const all = globSync('test/**/*.test.ts', { cwd: root, exclude: (path) => path.includes('node_modules') })
    .map((path) => path.replaceAll('\\', '/')).sort()
  const wanted = parts.map((part) => part.replace(/^\.\//, ''))
  const missing = wanted.find((part) => !all.some((path) => path.includes(part)))
  if (missing !== undefined) {
    console.error(`No test file has ${JSON.stringify(missing)} in its path.`)
    process.exit(2)
  }
  return wanted.length ? all.filter((path) => wanted.some((part) => path.includes(part))) : all
}

async function run(file: string) {
  const start = performance.now()
  // An empty working folder: the one of `npm test` may have a store or an environment file.
  const cwd = mkdtempSync(join(tmpdir(), 'partner-api-test-'))
  const child = spawn(process.execPath, ['--import', withoutDomains, join(root, file)], {
    cwd,
    env,
    // A group of its own, so that what a test leaves behind ends with it and cannot hold its output open.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => {
    try {
      if (child.pid) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The group has ended.
    }
  }
  running.add(kill)
  let [output, errors, problem] = ['', '', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => output += text)
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors += text)
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
  const found = readTap(output)
  if (problem && found.failures.length === 0) {
    found.failures.push({ name: 'the program', detail: `No test failed, but it ended with: ${problem}.` })
  }
  const printed = [...found.noise, ...errors.trimEnd().split('\n')].join('\n').trim()
  return { ...found, printed, problem, seconds: (performance.now() - start) / 1000 }
}

async function main(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      for (const kill of running) kill()
      process.exit(130)
    })
  }
  const files = choose(process.argv.slice(2))
  const seconds: Record<string, number> = existsSync(secondsFile)
    ? JSON.parse(readFileSync(secondsFile, 'utf8'))
    : {}
  let passed = 0
  const [skips, failed]: string[][] = [[], []]
  // The longest first, so that no long file runs alone in the end. New ones may be long.
  const length = (file: string) => seconds[file] ?? timeoutSeconds
  const waiting = files.toSorted((a, b) => length(b) - length(a))
  await Promise.all(Array.from({ length: jobs }, async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) {
      const ended = await run(file)
      const { failures, printed, problem } = ended
      seconds[file] = ended.seconds
      passed += ended.passed
      skips!.push(...ended.skips.map(({ name, reason }) => `${file} › ${name}: ${reason}`))
      failed!.push(...failures.map(({ name }) => `${file} › ${name}`))
      const counts = `${ended.passed} passed${failures.length ? `, ${failures.length} failed` : ''}`
      const end = problem && problem !== 'exit code 1' ? `  ${problem}` : ''
      console.log(
        `${failures.length ? 'FAIL' : 'ok  '}  ${file}  ${counts}  ${ended.seconds.toFixed(2)} s${end}`,
      )
      for (const { name, detail } of failures) console.log(`\n      ${name}\n${indent(detail)}`)
      if (printed && (failures.length || files.length === 1)) {
        console.log(`\n      what it printed:\n${indent(printed)}\n`)
      }
    }
  }))
  mkdirSync(cache, { recursive: true })
  writeFileSync(secondsFile, JSON.stringify(seconds))
  for (const [title, lines] of [['Skipped', skips!], ['Failed', failed!]] as const) {
    if (lines.length) console.log(`\n${title}:\n${lines.map((line) => `  ${line}`).join('\n')}`)
  }
  console.log(`\n${passed} passed, ${failed!.length} failed, ${skips!.length} skipped`)
  process.exitCode = failed!.length > 0 || passed === 0 ? 1 : 0
}

if (import.meta.main) await main()

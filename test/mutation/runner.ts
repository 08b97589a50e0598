/**
 * A test runner for StrykerJS that runs tap tests in its own process. The one that StrykerJS has for tap starts a process
 * for each file and mutant. A test is named after its file and its top-level title, so that a mutant is run against the
 * tests that reach it. Modules are loaded once: mutants of what runs while they load are ignored.
 */
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import type { Test, TestOpts } from 'tap'

/** What the instrumented source reads and writes. */
interface Instrumentation {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number | undefined
  hitLimit?: number | undefined
  mutantCoverage?: unknown
}

interface MutantRun {
  readonly activeMutant: { readonly id: string }
  readonly testFilter?: readonly string[]
  readonly hitLimit?: number
}

interface TestResult {
  readonly id: string
  readonly name: string
  readonly fileName: string
  readonly timeSpentMs: number
  readonly status: 0 | 1
  readonly failureMessage?: string
}

// tap would send its time limit to the parent process, which does not understand it.
const { send } = process
Object.assign(process, { send: undefined })
const tap = await import('tap')
Object.assign(process, { send })

const state = globalThis as { __stryker__?: Instrumentation; tapOfFile?: Test }
const instrumentation = state.__stryker__ ??= {}
const files = process.env['TEST_FILES']?.split(',') ?? []
let imports = 0
let fault: unknown

// Each import of a test file gets a tap of its own.
const tapOfFile = 'export default globalThis.tapOfFile; export const { test } = globalThis.tapOfFile'
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'tap'
      ? { url: `data:text/javascript,${tapOfFile}//${imports}`, shortCircuit: true }
      : next(specifier, context),
})

/** @param isWanted Which tests to run, by their ids. @returns The results up to the first failure. */
async function runFile(file: string, isWanted: (id: string) => boolean): Promise<TestResult[]> {
  const results: TestResult[] = []
  const root = state.tapOfFile = new tap.Test({ name: file } as TestOpts)
  root.resume()
  const pending: PromiseLike<unknown>[] = []
  const run = root.test.bind(root)
  const test = (title: string, body: (t: Test) => unknown): PromiseLike<unknown> => {
    const id = `${file} › ${title}`
    if (!isWanted(id)) return Promise.resolve()
    let start = 0
    const ended = run(title, async (t) => {
      if (results.some(({ status }) => status === 1)) return
      start = performance.now()
      fault = undefined
      instrumentation.currentTestId = id
      await body(t)
    }).then((ended) => {
      const failed = fault !== undefined || ended?.ok !== true || !root.passing()
      const timeSpentMs = performance.now() - start
      results.push({
        id,
        name: id,
        fileName: file,
        timeSpentMs,
        ...failed ? { status: 1, failureMessage: String(fault ?? id) } : { status: 0 },
      })
    })
    pending.push(ended)
    return ended
  }
  Object.assign(root, { test })
  // What a file runs while it loads belongs to no test.
  instrumentation.currentTestId = undefined
  await import(`${pathToFileURL(resolve(file))}?${imports++}`)
  await Promise.all(pending)
  return results
}

async function runTests(isWanted: (id: string) => boolean): Promise<TestResult[]> {
  const results: TestResult[] = []
  for (const file of files) {
    results.push(...await runFile(file, isWanted))
    if (results.at(-1)?.status === 1) break
  }
  return results
}

function createRunner() {
  // Thrown outside of a test's promise.
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (error) => void (fault ??= error))
  }
  return {
    capabilities: () => ({ reloadEnvironment: false }),
    async dryRun() {
      const tests = await runTests(() => true)
      return { status: 'complete', tests, mutantCoverage: instrumentation.mutantCoverage }
    },
    async mutantRun({ activeMutant, testFilter, hitLimit }: MutantRun) {
      Object.assign(instrumentation, { activeMutant: activeMutant.id, hitCount: 0, hitLimit })
      const wanted = testFilter && new Set(testFilter)
      const results = await runTests((id) => wanted?.has(id) ?? true)
      if (hitLimit !== undefined && instrumentation.hitCount! > hitLimit) {
        return { status: 'timeout', reason: 'Hit limit reached' }
      }
      const failed = results.find(({ status }) => status === 1)
      return failed === undefined ? { status: 'survived', nrOfTests: results.length } : {
        status: 'killed',
        killedBy: [failed.id],
        failureMessage: failed.failureMessage,
        nrOfTests: results.length,
      }
    },
  }
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'in-process', factory: createRunner }]

import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** What `run.ts` sets for one room. */
const { MUTATE } = process.env

export default {
  mutate: [MUTATE],
  plugins: [fileURLToPath(new URL('runner.ts', import.meta.url))],
  testRunner: 'in-process',
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  // Stryker rewrites tsconfig.json with the JavaScript API of TypeScript, which TypeScript 7 does not have.
  ignorePatterns: ['/dist', '/docs', '.tap', '*.db*', 'tsconfig.json'],
  // Node strips the types of every mutant: unlike a compiler, it ignores type errors.
  disableTypeChecks: false,
  tempDirName: '.stryker-tmp',
  concurrency: 3,
  timeoutMS: 20_000,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, reportTests: false },
  allowConsoleColors: false,
}

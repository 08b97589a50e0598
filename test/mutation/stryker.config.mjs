import process from 'node:process'

/** What `run.ts` sets for one room. */
const { MUTATE, TEST_FILES } = process.env

export default {
  mutate: [MUTATE],
  testRunner: 'tap',
  tap: { testFiles: TEST_FILES.split(','), nodeArgs: ['-r', '{{hookFile}}', '{{testFile}}'] },
  coverageAnalysis: 'perTest',
  // Stryker rewrites tsconfig.json with the JavaScript API of TypeScript, which TypeScript 7 does not have.
  ignorePatterns: ['/dist', '/docs', '.tap', '*.db*', 'tsconfig.json'],
  // Node strips the types of every mutant: unlike a compiler, it ignores type errors.
  disableTypeChecks: false,
  tempDirName: '.stryker-tmp',
  concurrency: 2,
  timeoutMS: 20_000,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, reportTests: false },
  allowConsoleColors: false,
}

/**
 * Installs what tests need into `test/node_modules`, which `npm ci` and `npm start` do without. Does nothing while the lock
 * file is the one that was installed.
 *
 * `node test/lab.ts [--all] [PROGRAM [ARGUMENT…]]` then runs a program of those packages, or of the PATH. `--all` adds the
 * packages of the workspaces: other runtimes, compilers, frameworks, and a driver for browsers.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const home = dirname(fileURLToPath(import.meta.url))
const packages = join(home, 'node_modules')
// npm empties the folder first, so the stamp is there only after an installation that was completed.
const stampFile = join(packages, '.installed')
const digest = createHash('sha256')
  .update(readFileSync(join(home, 'package-lock.json')))
  .update(`${process.platform} ${process.arch}`)
  .digest('hex')
const whole = `${digest} all`
// npm and the programs of packages are scripts for cmd.exe on Windows.
const shell = process.platform === 'win32'

const [first, ...others] = process.argv.slice(2)
const isWhole = first === '--all'
const [program, ...words] = isWhole ? others : process.argv.slice(2)
const stamp = isWhole ? whole : digest
const installed = existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : undefined
if (installed !== stamp && installed !== whole) install()
if (program !== undefined) process.exitCode = run(program, words)

function install(): void {
  const size = isWhole
    ? 'all test tools into test/node_modules: 1.2 GB, about a minute'
    : 'the test tools: 260 MB'
  console.error(`Installing ${size}, once, into test/node_modules…`)
  // test/.npmrc leaves the workspaces out.
  const workspaces = isWhole ? ['--workspaces', '--include-workspace-root'] : []
  const npm = spawnSync('npm', ['ci', ...workspaces, '--loglevel=error', '--no-audit', '--no-fund'], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell,
  })
  if (npm.status !== 0) {
    console.error(`The test tools could not be installed: ${npm.error?.message ?? 'npm ci failed'}.`)
    process.exit(2)
  }
  writeFileSync(stampFile, stamp)
}

function run(program: string, words: readonly string[]): number {
  const PATH = [join(packages, '.bin'), process.env['PATH']].join(delimiter)
  const ended = spawnSync(program, words, { stdio: 'inherit', env: { ...process.env, PATH }, shell })
  if (ended.error) console.error(ended.error.message)
  return ended.status ?? 2
}

/**
 * Installs what tests, checks and benchmarks need (other runtimes, a PostgreSQL server, compilers) into
 * `test/node_modules`, which `npm ci` and `npm start` do without. Does nothing while the lock file is the one that was
 * installed.
 *
 * `node test/lab.ts [PROGRAM [ARGUMENT…]]` then runs a program of those packages, or of the PATH.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const home = dirname(fileURLToPath(import.meta.url))
const packages = join(home, 'node_modules')
// npm empties the folder first, so the digest is there only after an installation that was completed.
const stamp = join(packages, '.installed')
const digest = createHash('sha256')
  .update(readFileSync(join(home, 'package-lock.json')))
  .update(`${process.platform} ${process.arch}`)
  .digest('hex')
// npm and the programs of packages are scripts for cmd.exe on Windows.
const shell = process.platform === 'win32'

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== digest) install()
const [program, ...words] = process.argv.slice(2)
if (program !== undefined) process.exitCode = run(program, words)

function install(): void {
  console.error('Installing the test tools into test/node_modules: 1.2 GB, about a minute, once…')
  const npm = spawnSync('npm', ['ci', '--loglevel=error', '--no-audit', '--no-fund'], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell,
  })
  if (npm.status !== 0) {
    console.error(`The test tools could not be installed: ${npm.error?.message ?? 'npm ci failed'}.`)
    process.exit(2)
  }
  writeFileSync(stamp, digest)
}

function run(program: string, words: readonly string[]): number {
  const PATH = [join(packages, '.bin'), process.env['PATH']].join(delimiter)
  const ended = spawnSync(program, words, { stdio: 'inherit', env: { ...process.env, PATH }, shell })
  if (ended.error) console.error(ended.error.message)
  return ended.status ?? 2
}

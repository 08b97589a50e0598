/** What `npm run release` makes: packages, executables that need nothing else, a container context, a list, checksums. */
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import t from 'tap'
import { temporaryFolder } from '../support/cli-program.ts'
import { canBuildNode } from './executable.ts'
import {
  binary,
  commit,
  createReadyRepository,
  MANIFEST,
  release,
  ROOT,
  run as runProgram,
} from './installed.ts'
import { checkSettings } from './ready.ts'
import { dependencies, packPackages } from './tarballs.ts'

const absence = !existsSync(binary('bun'))
  ? 'Bun is not installed'
  : canBuildNode()
  ? undefined
  : 'node --build-sea needs Node 25.7'
if (absence !== undefined) {
  t.test('a release', { skip: absence }, (t) => t.end())
  process.exit()
}

const { version } = MANIFEST
const home = temporaryFolder()
const [repository, out] = [join(home, 'repository'), join(home, 'out')]
await createReadyRepository(repository)
await commit(repository, { GIT_COMMITTER_DATE: '2001-02-03T04:05:06Z' })
const url = 'https://github.com/acme-travel/partner-api'
const { code, stdout } = await release(repository, '--repository', url, '--out', out)
if (code !== 0) throw new Error(stdout)
const readJson = (...path: string[]) => JSON.parse(readFileSync(join(out, ...path), 'utf8'))
const executables = readdirSync(out).filter((name) => /-(?:node|bun)-/.test(name))
const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

t.test('it has all that is published, with checksums', (t) => {
  t.match(stdout, /\nLeft to do:\n[^]*\nReady\. Nothing was published\.\n$/)
  t.same(executables.map((name) => name.split('-')[3]), ['bun', 'node'])
  t.same(readdirSync(out).sort(), [
    'SHA256SUMS',
    'client',
    'container',
    ...executables,
    `partner-api-${version}.cdx.json`,
    `partner-api-${version}.tgz`,
    `partner-api-client-${version}.tgz`,
  ])
  const lines = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')
  const files = readdirSync(out, { recursive: true, encoding: 'utf8' })
    .filter((file) => file !== 'SHA256SUMS' && statSync(join(out, file)).isFile())
  t.same(lines, files.sort().map((file) => `${digest(join(out, file))}  ${file}`))
  t.end()
})

t.test('the list of dependencies has the licence and the digest of each', (t) => {
  const { metadata, components, serialNumber } = readJson(`partner-api-${version}.cdx.json`)
  t.match(metadata.component, { name: 'partner-api', version, purl: `pkg:npm/partner-api@${version}` })
  t.same([metadata.timestamp, serialNumber], ['2001-02-03T04:05:06.000Z', undefined], 'the same each time')
  const installed = dependencies(ROOT).map(([path]) =>
    JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'))
  )
  const locked = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages
  t.ok(Object.keys(MANIFEST.dependencies).every((name) => installed.some((one) => one.name === name)))
  t.same(
    new Set(components.map(({ name, version, licenses, hashes }: Record<string, unknown>) => ({
      name,
      version,
      licenses,
      hashes,
    }))),
    new Set(installed.map(({ name, version, license }) => ({
      name,
      version,
      licenses: [{ license: { id: license } }],
      hashes: [{
        alg: 'SHA-512',
        content: Buffer.from(locked[`node_modules/${name}`].integrity.slice(7), 'base64').toString('hex'),
      }],
    }))),
  )
  t.end()
})

t.test('the container context has what its Containerfile copies, in the locked versions', async (t) => {
  const tarball = `partner-api-${version}.tgz`
  const folder = join(out, 'container')
  t.same(readdirSync(folder).sort(), ['Containerfile', 'package-lock.json', 'package.json', tarball])
  t.equal(digest(join(folder, tarball)), digest(join(out, tarball)))
  const { packages } = readJson('container/package-lock.json')
  for (const [path, entry] of dependencies(ROOT)) t.same(packages[path], entry)
  await runProgram('npm', ['ci', '--dry-run', '--offline', '--omit=dev'], folder)
})

t.test('a commit has the same packages, whenever and wherever they are packed', async (t) => {
  const again = join(home, 'again')
  await packPackages(repository, again, checkSettings({ repository: url }))
  const service = `partner-api-${version}.tgz`
  for (const name of [service, `partner-api-client-${version}.tgz`]) {
    t.equal(digest(join(again, name)), digest(join(out, name)))
  }
  const page = await runProgram('tar', ['-xzOf', join(out, service), 'package/dist/partner-api.1'], home)
  t.match(page.stdout, '"2001-02-03"')
})

for (const name of executables) {
  t.test(`${name.split('-')[3]} is inside an executable that needs no other file`, async (t) => {
    const file = join(out, name)
    const cwd = join(temporaryFolder(), 'empty')
    mkdirSync(cwd)

    const run = (words: string[], env: Record<string, string> = {}) =>
      new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
        const child = execFile(
          file,
          words,
          { cwd, env },
          (error, stdout, stderr) =>
            resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
        )
        child.stdin!.end()
      })
    t.match(await run(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
    t.match(await run(['--store', 'sqlite:a.db', 'migrate']), { code: 0, stdout: /pending: +nothing/ })
    t.match(await run(['no-such-command']), { code: 2 })
    // Loads every command.
    t.match(await run(['completions', 'bash']), { code: 0, stdout: 'partner-api' })

    const demo = spawn(file, ['demo', '--port', '0', '--json'], { cwd, env: {} })
    t.teardown(() => demo.kill('SIGKILL'))
    const [line] = await once(createInterface(demo.stdout), 'line')
    const { key, url, content } = JSON.parse(line).data
    t.match(content, { profiles: 64 })
    const profiles = await fetch(`${url}/service/public/profiles?partner=demo`, {
      headers: { 'x-service-partner-key': key },
    })
    t.equal(profiles.status, 200)
    t.equal((await profiles.json()).data.length, 20)
    for (const page of ['docs', 'openapi.json']) {
      const { status, headers } = await fetch(`${url}/service/${page}`)
      t.same([status, headers.get('content-type')?.split(/[/;]/)[1]], [
        200,
        page === 'docs' ? 'html' : 'json',
      ])
    }
    t.match(
      await run(['verify', '--url', url, '--partner', 'demo', '--smoke'], { PARTNER_API_KEY: key }),
      { code: 0 },
    )
    demo.kill('SIGTERM')
    const [code] = await once(demo, 'exit')
    t.equal(code, 0)

    const words = [
      'serve',
      '--port',
      '0',
      '--metrics',
      '0',
      ...process.platform === 'linux' ? ['--workers', '2'] : [],
    ]
    const server = spawn(file, words, { cwd, env: {} })
    t.teardown(() => server.kill('SIGKILL'))
    const exited = once(server, 'exit')
    const started = await Promise.race([once(createInterface(server.stdout), 'line'), exited])
    t.match(started, [/^listening on /])
    const restore = await run(['store', 'restore', 'a.db', '--replace'])
    t.match(restore, { code: 1, stderr: /Another process/ })
    server.kill('SIGTERM')
    t.same(await exited, [0, null])
    t.match(await run(['store', 'backup', 'b.db']), { code: 0, stdout: /^seal: /m })
    t.same(readdirSync(cwd).filter((name) => !/\.db(?:-[\w-]+)?$/.test(name)), [])
  })
}

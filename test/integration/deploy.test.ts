/** Checks the systemd unit of the examples, and runs what it starts. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { BLOCKED_PORTS } from '../../cli/serve/blocked-ports.ts'
import {
  cleanEnv,
  ending,
  programOn,
  type Served,
  startServing,
  temporaryFolder,
} from '../support/cli-program.ts'
import { readPage, ROOT } from './docs.ts'

const program = 'node_modules/.bin/partner-api'
const unit = readPage('examples/deploy/partner-api.service')
const backup = readPage('examples/deploy/partner-api-backup.service')
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

/** Checks that a server is healthy and that SIGTERM ends it with 0. */
async function servesAndStops(t: Test, { child, url, ended }: Served): Promise<void> {
  t.equal((await fetch(`${url}/service/health`)).status, 200)
  child.kill('SIGTERM')
  t.equal((await ended).code, 0)
}

t.test('systemd accepts the units', { skip: hasSystemd ? false : 'systemd is not installed' }, (t) => {
  const folder = temporaryFolder()
  const files = [
    'partner-api.service',
    'partner-api@.service',
    'partner-api-backup.service',
    'partner-api-backup.timer',
  ]
  for (const file of files) {
    // It has to find the program.
    const text = readPage(`examples/deploy/${file}`).replace(`/opt/partner-api/${program}`, process.execPath)
    writeFileSync(join(folder, file), text)
  }
  const page = readPage('docs/deploy.md')
  const [, shared = '', own = ''] = /replace `(.+)` by `(.+)` in\s+\[partner-api@/.exec(page) ?? []
  const template = readPage('examples/deploy/partner-api@.service')
  t.match(template.replace(shared, own), 'partner-api serve --port 878%i --metrics 946%i ')
  const instances = new Set(Array.from(page.matchAll(/partner-api@\d+/g), ([name]) => `${name}.service`))
  t.equal(instances.size, 4)
  const words = ['verify', '--man=no', ...[...files, ...instances].map((file) => join(folder, file))]
  const { status, stderr } = spawnSync('systemd-analyze', words, { encoding: 'utf8' })
  t.notMatch(stderr, 'partner-api')
  t.equal(status, 0)
  t.end()
})

t.test('the units are exposed little', { skip: hasSystemd ? false : 'systemd is not installed' }, (t) => {
  for (const file of ['partner-api.service', 'partner-api@.service', 'partner-api-backup.service']) {
    const words = ['security', '--offline=true', '--threshold=15', `examples/deploy/${file}`]
    const { status, stdout } = spawnSync('systemd-analyze', words, { cwd: ROOT, encoding: 'utf8' })
    t.comment(/Overall exposure.*/.exec(stdout)?.[0])
    t.equal(status, 0, stdout)
  }
  t.end()
})

t.test('the back-up unit keeps a copy for each day of the week', async (t) => {
  const store = `sqlite:${join(temporaryFolder(), 'partner-api.db')}`
  await programOn(store).run('migrate')
  const folder = temporaryFolder()
  const [, command = ''] = /^ExecStart=\/bin\/sh -c '(.*)'$/m.exec(backup)!
  t.match(backup, 'StateDirectory=partner-api partner-api-backups\n')
  const script = command.replace(
    `/opt/partner-api/${program}`,
    `"${process.execPath}" "${join(ROOT, 'cli/main.ts')}"`,
  )
    .replace('/var/lib/partner-api-backups', folder).replaceAll('%%', '%')
  for (const time of ['first', 'repeated']) {
    const env = cleanEnv({ PARTNER_API_STORE: store })
    const { status, stderr } = spawnSync('/bin/sh', ['-c', script], { env, encoding: 'utf8' })
    t.equal(status, 0, `${time}: ${stderr}`)
  }
  t.match(readdirSync(folder).join(' '), /^[1-7]\.db$/)
})

t.test('the health check of the container works on a port that fetch refuses', async (t) => {
  const [, json = ''] = /^HEALTHCHECK .* CMD (.+)$/m.exec(readPage('examples/deploy/Containerfile')) ?? []
  const [, ...words] = JSON.parse(json) as readonly string[]
  let status = 200
  const server = createServer((_request, response) => response.writeHead(status).end())
  t.teardown(() => server.close())
  for (const port of BLOCKED_PORTS) {
    if (port < 1024) continue
    const listening = once(server.listen(port, '127.0.0.1'), 'listening').then(() => true, () => false)
    if (await listening) break
  }
  const { port } = server.address() as AddressInfo
  const check = async () => {
    const child = spawn(process.execPath, words, { env: cleanEnv({ PORT: String(port) }) })
    return (await ending(child)).code
  }
  t.equal(await check(), 0)
  status = 503
  t.equal(await check(), 1)
  server.close()
  t.equal(await check(), 1)
})

t.test('the unit starts the service', async (t) => {
  const folder = temporaryFolder()
  const [path = '', ...words] = /^ExecStart=(.*)$/m.exec(unit)![1]!.split(' ')
  t.equal(path, `/opt/partner-api/${program}`)
  t.match(unit, '\nStateDirectory=partner-api\nWorkingDirectory=/var/lib/partner-api\n')
  const served = await startServing(
    words.join(' ').replace('8787', '0').split(' '),
    'sqlite:partner-api.db',
    {
      cwd: folder,
    },
  )
  await servesAndStops(t, served)
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])
  t.ok(seconds > 10, 'systemd waits for pending requests')
})

/** Checks the systemd unit of the examples, and runs what it starts. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { type Served, startServing, temporaryFolder } from '../support/cli-program.ts'
import { readPage, ROOT } from './docs.ts'

const program = 'node_modules/.bin/partner-api'
const unit = readPage('examples/deploy/partner-api.service')
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

/** Checks that a server is healthy and that SIGTERM ends it with 0. */
async function servesAndStops(t: Test, { child, url, ended }: Served): Promise<void> {
  t.equal((await fetch(`${url}/service/health`)).status, 200)
  child.kill('SIGTERM')
  t.equal((await ended).code, 0)
}

t.test('systemd accepts the unit', { skip: hasSystemd ? false : 'systemd is not installed' }, (t) => {
  const file = join(temporaryFolder(), 'partner-api.service')
  // It has to find the program.
  writeFileSync(file, unit.replace(`/opt/partner-api/${program}`, process.execPath))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
  t.notMatch(stderr, 'partner-api.service')
  t.equal(status, 0)
  t.end()
})

t.test('the unit is exposed little', { skip: hasSystemd ? false : 'systemd is not installed' }, (t) => {
  const words = ['security', '--offline=true', '--threshold=15', 'examples/deploy/partner-api.service']
  const { status, stdout } = spawnSync('systemd-analyze', words, { cwd: ROOT, encoding: 'utf8' })
  t.comment(/Overall exposure.*/.exec(stdout)?.[0])
  t.equal(status, 0, stdout)
  t.end()
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

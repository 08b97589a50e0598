/** Has Patroni and HAProxy check their configuration, which the trial of a cluster runs. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { temporaryFolder } from '../support/cli-program.ts'
import { readPage } from './docs.ts'

const env = { PATH: `${process.env['PATH']}:/usr/sbin`, LC_ALL: 'C.UTF-8' }
const lacks = (program: string) =>
  spawnSync(program, ['--help'], { env }).error ? `${program} is not installed` : false

/** Writes an example into a file, changed for this machine. */
function adapt(name: string, change: (text: string) => string): string {
  const file = join(temporaryFolder(), name)
  writeFileSync(file, change(readPage(`examples/deploy/${name}`)))
  return file
}

/** The programs of PostgreSQL that Patroni looks for. */
const programs = ['initdb', 'pg_basebackup', 'pg_controldata', 'pg_ctl', 'pg_isready', 'postgres']

t.test('Patroni accepts its configuration', { skip: lacks('patroni') }, async (t) => {
  const folder = temporaryFolder()
  for (const program of programs) writeFileSync(join(folder, program), '', { mode: 0o755 })
  // It connects to etcd, and tries the ports on which it would listen.
  const listener = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const { port } = listener.address() as AddressInfo
  const localize = (text: string) =>
    text.replaceAll(/db\d\.example:2379/g, `127.0.0.1:${port}`)
      .replaceAll(/0\.0\.0\.0:\d+/g, '127.0.0.1:0')
      .replace(/bin_dir: .*/, `bin_dir: ${folder}`)
  const check = (change: (text: string) => string) => {
    const file = adapt('patroni.yml', (text) => change(localize(text)))
    const variables = {
      PATRONI_NAME: 'db1',
      PATRONI_RESTAPI_CONNECT_ADDRESS: 'db1.example:8008',
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: 'db1.example:5432',
    }
    const { stdout, stderr } = spawnSync('patroni', ['--validate-config', file], {
      env: { ...env, ...variables },
      encoding: 'utf8',
    })
    return stdout + stderr
  }
  t.equal(check((text) => text), '')
  t.match(check((text) => text.replace('ttl: 30', 'ttl: soon')), 'ttl')
  t.end()
})

t.test('HAProxy accepts its configuration', { skip: lacks('haproxy') }, (t) => {
  const check = (change: (text: string) => string) => {
    const file = adapt(
      'haproxy.cfg',
      (text) => change(text.replaceAll(/\b(?:db|web)\d\.example/g, '127.0.0.1')),
    )
    return spawnSync('haproxy', ['-c', '-f', file], { env, encoding: 'utf8' })
  }
  const { status, stderr } = check((text) => text)
  t.equal(status, 0)
  t.equal(stderr, '', 'without warnings')
  t.equal(check((text) => text.replace('mode tcp', 'mode post')).status, 1)
  t.end()
})

/** The commands that `store backup` and `store restore` print for PostgreSQL, run with the tools of a distribution. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { freePort } from '../postgres/free-port.ts'
import { createPrivateFolder } from '../postgres/private-folder.ts'
import { unprivileged } from '../postgres/unprivileged.ts'
import { until } from '../postgres/until.ts'
import { documentOf, runProgram } from '../support/cli-program.ts'
import { createPartner } from '../support/partner.ts'

// The test tools have no pg_dump, and one that is older than the server refuses it.
const programs = globSync('/usr/lib/postgresql/*/bin/pg_dump').map(dirname)
  .filter((folder) => globSync(join(folder, 'initdb')).length > 0).sort().at(-1)

test('they copy a store', { skip: programs === undefined && 'PostgreSQL is not installed' }, async (t) => {
  const { path: folder } = await createPrivateFolder('tools', false)
  const data = join(folder, 'data')
  const port = await freePort()
  const run = (program: string, ...words: readonly string[]): readonly string[] =>
    unprivileged([join(programs!, program), ...words])
  const [initdb = '', ...initdbWords] = run(
    'initdb',
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
  )
  execFileSync(initdb, initdbWords, { cwd: folder, stdio: 'pipe' })
  const address = ['-h', '127.0.0.1', '-p', `${port}`]
  const [postgres = '', ...words] = run('postgres', '-D', data, '-k', folder, ...address)
  const server = spawn(postgres, words, { cwd: folder, stdio: 'ignore' })
  const ended = once(server, 'close')
  t.teardown(async () => {
    server.kill('SIGINT')
    await ended
  })
  await until(() => spawnSync(join(programs!, 'pg_isready'), address).status === 0, 'PostgreSQL')
  const psql = (sql: string) =>
    execFileSync(join(programs!, 'psql'), [...address, '-U', 'postgres', '-c', sql], { stdio: 'pipe' })
  psql('CREATE ROLE partner_api LOGIN')
  psql('CREATE DATABASE partner_api OWNER partner_api')

  const url = `postgres://partner_api@127.0.0.1:${port}/partner_api`
  const store = await openPostgresStore(url)
  t.teardown(() => store.close())
  const { issue, keys } = await createPartner(store)
  const { key } = await issue()
  const dump = join(folder, "it's.dump")
  /** Runs the commands that the program prints. */
  async function shell(...args: string[]): Promise<void> {
    const { error } = documentOf(
      await runProgram(['store', ...args, '--json'], { env: { PARTNER_API_STORE: url } }),
    )
    for (const line of error['commands'] as string[]) {
      execFileSync('sh', ['-c', line], { env: { PATH: `${programs}:/usr/bin:/bin` }, stdio: 'pipe' })
    }
  }
  await shell('backup', dump)
  t.equal(statSync(dump).mode & 0o77, 0, 'only its owner can read the dump')
  await keys.revoke(key.id)
  await shell('restore', dump)
  const restored = await openPostgresStore(url.replace(/partner_api$/, 'partner_api_restored'))
  t.teardown(() => restored.close())
  t.same((await restored.findKey(key.id))?.key, key)
  t.equal((await store.findKey(key.id))?.key.state, 'revoked')
})

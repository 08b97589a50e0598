/**
 * Backs up a store under mixed load, kills the server, restores, and serves again:
 * `node test/integration/trials/backup.ts [ROUNDS, 5] [BACKUPS, 3]`. Every signup that was acknowledged before a backup
 * began must be in it, every key must work as it did then, and the restore must name the keys that were revoked since.
 * One more round uses PostgreSQL and the commands that `store backup` prints, if PostgreSQL's tools are installed.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { freePort } from '../../postgres/free-port.ts'
import { createPrivateFolder } from '../../postgres/private-folder.ts'
import { unprivileged } from '../../postgres/unprivileged.ts'
import { until } from '../../postgres/until.ts'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import {
  documentOf,
  type Ended,
  runProcess,
  startServing,
  stopServing,
  temporaryFolder,
} from '../../support/cli-program.ts'
import { createClient } from './client.ts'
import { bodyOf } from './signing.ts'
import { createTenant, NO_LIMITS, PARTNER, READ, type Tenant } from './tenant.ts'
import { check, countAt, endWithin, ms } from './verdict.ts'

const rounds = countAt(0, 5)
const backups = countAt(1, 3)
const senders = 8
endWithin(120 + rounds * 60)

interface Signup {
  readonly id: string
  readonly answeredAt: number
  readonly ms: number
}

/** What clients and operators know, in instants of `performance.now()`. */
interface Known {
  readonly signups: Signup[]
  readonly keys: { readonly id: string; readonly text: string; readonly issuedAt: number }[]
  readonly revocations: Map<string, { readonly begunAt: number; readonly doneAt: number }>
}

/** Sends signups and reads, and issues and revokes keys, until stopped. */
function startLoad(url: string, key: string, { keys }: Tenant, known: Known, round: number) {
  const client = createClient(url)
  let isOver = false
  const issue = async () => {
    const { key, text } = await keys.issue({ partner: PARTNER, name: 'trial', environment: 'live' })
    known.keys.push({ id: key.id, text, issuedAt: performance.now() })
  }
  const work = [
    ...Array.from({ length: senders }, async (_, sender) => {
      for (let count = 0; !isOver; count++) {
        const number = (round * senders + sender) * 1_000_000 + count
        const { status, body, askedAt, answeredAt } = await client.send('/partner/signups', {
          key,
          body: bodyOf(number),
          idempotencyKey: `trial-${number}`,
        })
        if (status !== 201) continue
        known.signups.push({ id: JSON.parse(body).data.id, answeredAt, ms: answeredAt - askedAt })
        await client.send(READ, { key })
      }
    }),
    (async () => {
      while (!isOver) {
        await issue()
        await issue()
        const { id } = known.keys[known.keys.length >> 1]!
        const begunAt = performance.now()
        if (!known.revocations.has(id)) {
          await keys.revoke(id)
          known.revocations.set(id, { begunAt, doneAt: performance.now() })
        }
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })(),
  ]
  return async () => {
    isOver = true
    await Promise.all(work)
    await client.close()
  }
}

/** Checks that the commands of a restore name every key that was in the backup and was revoked since. */
function checkNamed(
  name: string,
  commands: readonly string[],
  { keys, revocations }: Known,
  { begunAt, doneAt }: { begunAt: number; doneAt: number },
): void {
  const since = [...revocations].filter(([id, revocation]) =>
    revocation.begunAt > doneAt && keys.some((key) => key.id === id && key.issuedAt < begunAt)
  )
  const missing = since.filter(([id]) => !commands.includes(`partner-api keys revoke ${id}`)).length
  check(
    `${name}: all ${since.length} keys revoked since are named (${missing} missing)`,
    missing === 0 && since.length > 0,
  )
}

/** Checks a restored store against what was known before and after its backup. */
async function checkRestored(
  name: string,
  storeUrl: string,
  known: Known,
  { begunAt, doneAt }: { begunAt: number; doneAt: number },
): Promise<void> {
  const { stdout } = await cli(storeUrl, 'signups', 'export')
  const kept = new Set(stdout.trim().split('\n').map((line) => JSON.parse(line).id))
  const before = known.signups.filter(({ answeredAt }) => answeredAt < begunAt)
  const lost = before.filter(({ id }) => !kept.has(id)).length
  check(
    `${name}: none of ${before.length} signups acknowledged before the backup is lost (${lost})`,
    lost === 0,
  )

  const served = await startServing(['serve', '--port', '0', ...NO_LIMITS], storeUrl)
  const client = createClient(served.url)
  let [valid, revoked, wrong] = [0, 0, 0]
  for (const { id, text } of known.keys.filter(({ issuedAt }) => issuedAt < begunAt)) {
    const revocation = known.revocations.get(id)
    // One that was revoked during the backup may be in either state.
    if (revocation !== undefined && revocation.doneAt > begunAt && revocation.begunAt < doneAt) continue
    const isRevoked = revocation !== undefined && revocation.doneAt < begunAt
    const { status } = await client.send(READ, { key: text })
    if (status !== (isRevoked ? 401 : 200)) wrong++
    if (isRevoked) revoked++
    else valid++
  }
  await client.close()
  await stopServing(served)
  check(
    `${name}: ${valid} keys are valid and ${revoked} revoked, as of the backup (${wrong} wrong)`,
    wrong === 0 && valid > 0,
  )
}

function cli(storeUrl: string, ...args: string[]): Promise<Ended> {
  return runProcess(args, { env: { PARTNER_API_STORE: storeUrl } })
}

function startRound(): Known {
  return { signups: [], keys: [], revocations: new Map() }
}

async function trySqlite(round: number): Promise<void> {
  const folder = temporaryFolder()
  const storeUrl = `sqlite:${join(folder, 'store.db')}`
  const known = startRound()
  const store: Store = await openSqliteStore(join(folder, 'store.db'))
  const tenant = await createTenant(store)
  const { text: key } = await tenant.issue()
  const served = await startServing(['serve', '--port', '0', ...NO_LIMITS], storeUrl)
  const stop = startLoad(served.url, key, tenant, known, round)
  const made: { file: string; begunAt: number; doneAt: number; seal: string }[] = []
  for (let number = 0; number < backups; number++) {
    const enough = known.signups.length + 200
    // More keys than are revoked while a backup is made: some of those in it are revoked after it.
    await until(() => known.signups.length > enough && known.revocations.size > 40, 'signups and revocations')
    const file = join(folder, `backup-${number}.db`)
    const begunAt = performance.now()
    const ended = await cli(storeUrl, 'store', 'backup', file, '--json')
    made.push({ file, begunAt, doneAt: performance.now(), seal: documentOf(ended).data.seal })
  }
  // Revocations after the last backup, too.
  const { size } = known.revocations
  await until(() => known.revocations.size > size + 2, 'revocations')
  const closed = new Promise((resolve) => served.child.on('close', resolve))
  served.child.kill('SIGKILL')
  await closed
  await stop()
  await store.close()

  const slowest = Math.max(...known.signups.map(({ ms }) => ms))
  const last = made.at(-1)!
  console.log(
    `round ${
      round + 1
    }: ${known.signups.length} signups, ${known.revocations.size} revocations, ${made.length} backups of ` +
      `${statSync(last.file).size} bytes in ${
        made.map((each) => ms(each.doneAt - each.begunAt)).join(', ')
      }; slowest ` +
      `signup ${ms(slowest)}`,
  )
  for (const [number, backup] of made.entries()) {
    const { data, error } = documentOf(
      await cli(storeUrl, 'store', 'restore', backup.file, '--replace', '--json'),
    )
    const name = `backup ${number + 1}`
    check(`${name} is restored${error ? `: ${error.detail}` : ''}`, data?.dry_run === false)
    if (number === made.length - 1 || number === 0) {
      const verified = await cli(storeUrl, 'audit', 'verify', '--seal', backup.seal)
      check(`${name}: audit verify --seal holds`, verified.code === 0)
    }
    if (number === 0) {
      checkNamed(name, data.undone.commands, known, backup)
    }
    await checkRestored(name, storeUrl, known, backup)
  }
}

/** The last folder of Debian's programs with a server and pg_dump of one version: the test tools have no pg_dump. */
const programs = globSync('/usr/lib/postgresql/*/bin/pg_dump').map(dirname).sort().at(-1)

async function tryPostgres(folder: string): Promise<void> {
  const path = join(folder, 'data')
  const port = await freePort()
  const asUser = ([program = '', ...words]: readonly string[]) =>
    unprivileged([join(programs!, program), ...words])
  const run = ([command = '', ...words]: readonly string[]) =>
    execFileSync(command, words, { cwd: folder, stdio: 'pipe', encoding: 'utf8' })
  run(asUser(['initdb', '-D', path, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']))
  const [command = '', ...words] = asUser([
    'postgres',
    '-D',
    path,
    '-k',
    folder,
    '-h',
    '127.0.0.1',
    '-p',
    `${port}`,
  ])
  const server = spawn(command, words, { cwd: folder, stdio: 'ignore' })
  const ended = new Promise((resolve) => server.on('close', resolve))
  try {
    const isReady = () =>
      spawnSync(join(programs!, 'pg_isready'), ['-h', '127.0.0.1', '-p', `${port}`]).status === 0
    await until(isReady, 'PostgreSQL')
    const psql = (sql: string) =>
      run([join(programs!, 'psql'), '-h', '127.0.0.1', '-p', `${port}`, '-U', 'postgres', '-c', sql])
    psql('CREATE ROLE partner_api LOGIN CREATEDB')
    psql('CREATE DATABASE partner_api OWNER partner_api')
    const storeUrl = `postgres://partner_api@127.0.0.1:${port}/partner_api`
    const known = startRound()
    const store = await openPostgresStore(storeUrl)
    const tenant = await createTenant(store)
    const { text: key } = await tenant.issue()
    const served = await startServing(['serve', '--port', '0', ...NO_LIMITS], storeUrl)
    const stop = startLoad(served.url, key, tenant, known, rounds)
    await until(() => known.signups.length > 300, 'signups')
    const file = join(folder, 'partner-api.dump')
    const shell = async (...given: string[]) => {
      const { error } = documentOf(await cli(storeUrl, 'store', ...given, '--json'))
      for (const line of error['commands'] as string[]) {
        execFileSync('sh', ['-c', line], { env: { PATH: `${programs}:/usr/bin:/bin` }, stdio: 'pipe' })
      }
    }
    const begunAt = performance.now()
    await shell('backup', file)
    const doneAt = performance.now()
    const { stdout: seal } = await cli(storeUrl, 'audit', 'seal')
    const { size } = known.revocations
    await until(() => known.revocations.size > size + 2, 'revocations')
    served.child.kill('SIGKILL')
    await stop()
    await store.close()
    console.log(
      `PostgreSQL: ${known.signups.length} signups, a dump of ${statSync(file).size} bytes in ${
        ms(doneAt - begunAt)
      }`,
    )
    check('the dump is readable by its owner only', (statSync(file).mode & 0o77) === 0)
    await shell('restore', file)
    const restored = storeUrl.replace(/partner_api$/, 'partner_api_restored')
    check('audit verify holds', (await cli(restored, 'audit', 'verify')).code === 0)
    check(
      'a later seal does not hold',
      (await cli(restored, 'audit', 'verify', '--seal', seal.trim())).code === 1,
    )
    const { data: { undone } } = documentOf(
      await cli(restored, 'store', 'reconcile', '--replaced', storeUrl, '--json'),
    )
    checkNamed('the dump', undone.commands, known, { begunAt, doneAt })
    await checkRestored('the dump', restored, known, { begunAt, doneAt })
  } finally {
    server.kill('SIGINT')
    await ended
  }
}

for (let round = 0; round < rounds; round++) await trySqlite(round)
if (programs === undefined) console.log("PostgreSQL is left out: Debian's pg_dump is not installed.")
else {
  const { path } = await createPrivateFolder('backup', false)
  await tryPostgres(path)
}
process.exit()

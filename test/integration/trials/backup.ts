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
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../postgres/free-port.ts'
import { createPrivateFolder } from '../../postgres/private-folder.ts'
import { unprivileged } from '../../postgres/unprivileged.ts'
import { until } from '../../postgres/until.ts'
import { documentOf, type Ended, runProcess, temporaryFolder } from '../../support/cli-program.ts'
import { signUp, startLoad } from './load.ts'
import { check, countAt, endWithin, ms, READ, startReplica, startScene } from './setup.ts'

const rounds = countAt(0, 5)
const backups = countAt(1, 3)
endWithin(120 + rounds * 60)

/** When something was done, in instants of `performance.now()`. */
interface Span {
  readonly begunAt: number
  readonly doneAt: number
}

type Work = ReturnType<typeof startWork>

/** Signs up and reads, and issues and revokes keys, until stopped. */
function startWork({ clients, key, keys, issue }: Awaited<ReturnType<typeof startScene>>) {
  const client = clients[0]!
  const issued: { readonly id: string; readonly text: string; readonly issuedAt: number }[] = []
  const revoked = new Map<string, Span>()
  let number = 0
  let isOver = false
  const signing = startLoad(() => signUp(client, key, number++), 8, 0)
  const reading = startLoad(() => client.send(READ, { key }), 8, 0)
  const operating = (async () => {
    while (!isOver) {
      for (const { key, text } of [await issue(), await issue()]) {
        issued.push({ id: key.id, text, issuedAt: performance.now() })
      }
      const { id } = issued[issued.length >> 1]!
      const begunAt = performance.now()
      if (!revoked.has(id)) {
        await keys.revoke(id)
        revoked.set(id, { begunAt, doneAt: performance.now() })
      }
      await sleep(20)
    }
  })()
  return {
    issued,
    revoked,
    replies: signing.replies,
    /** Waits until so many more signups were sent and keys revoked. */
    more(signups: number, revocations: number): Promise<void> {
      const [sent, done] = [signing.replies.length + signups, revoked.size + revocations]
      return until(() => signing.replies.length >= sent && revoked.size >= done, 'signups and revocations')
    },
    async stop() {
      isOver = true
      await Promise.all([signing.stop(), reading.stop(), operating])
    },
  }
}

/** Checks that the commands of a restore name every key that was in the backup and was revoked since. */
function checkNamed(
  name: string,
  commands: readonly string[],
  { issued, revoked }: Work,
  { begunAt, doneAt }: Span,
): void {
  const before = new Set(issued.filter(({ issuedAt }) => issuedAt < begunAt).map(({ id }) => id))
  const since = [...revoked].filter(([id, revocation]) => revocation.begunAt > doneAt && before.has(id))
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
  { replies, issued, revoked }: Work,
  { begunAt, doneAt }: Span,
): Promise<void> {
  const { stdout } = await cli(storeUrl, 'signups', 'export')
  const kept = new Set(stdout.trim().split('\n').map((line) => JSON.parse(line).id))
  const before = replies.filter(({ status, answeredAt }) => status === 201 && answeredAt < begunAt)
  const lost = before.filter(({ body }) => !kept.has(JSON.parse(body).data.id)).length
  check(
    `${name}: none of ${before.length} signups acknowledged before the backup is lost (${lost})`,
    lost === 0,
  )

  const { client, stop } = await startReplica('restored', storeUrl)
  const counts = { 200: 0, 401: 0 }
  let wrong = 0
  for (const { id, text } of issued.filter(({ issuedAt }) => issuedAt < begunAt)) {
    const revocation = revoked.get(id)
    // One that was revoked during the backup may be in either state.
    if (revocation !== undefined && revocation.doneAt > begunAt && revocation.begunAt < doneAt) continue
    const expected = revocation !== undefined && revocation.doneAt < begunAt ? 401 : 200
    const { status } = await client.send(READ, { key: text })
    counts[expected]++
    if (status !== expected) wrong++
  }
  await stop()
  check(
    `${name}: ${counts[200]} keys are valid and ${counts[401]} revoked, as of the backup (${wrong} wrong)`,
    wrong === 0 && counts[200] > 0,
  )
}

function cli(storeUrl: string, ...args: string[]): Promise<Ended> {
  return runProcess(args, { env: { PARTNER_API_STORE: storeUrl } })
}

async function trySqlite(round: number): Promise<void> {
  const folder = temporaryFolder()
  const storeUrl = `sqlite:${join(folder, 'store.db')}`
  const scene = await startScene(storeUrl, 1)
  const work = startWork(scene)
  const made: (Span & { readonly file: string; readonly seal: string })[] = []
  for (let number = 0; number < backups; number++) {
    // More keys than are revoked while a backup is made: some of those in it are revoked after it.
    await work.more(200, 40)
    const file = join(folder, `backup-${number}.db`)
    const begunAt = performance.now()
    const { data } = documentOf(await cli(storeUrl, 'store', 'backup', file, '--json'))
    made.push({ file, begunAt, doneAt: performance.now(), seal: data.seal })
  }
  // Revocations after the last backup, too.
  await work.more(0, 3)
  await scene.replicas[0]!.kill()
  await work.stop()
  await scene.store.close()

  const slowest = Math.max(...work.replies.map(({ askedAt, answeredAt }) => answeredAt - askedAt))
  const took = made.map(({ begunAt, doneAt }) => ms(doneAt - begunAt)).join(', ')
  console.log(
    `round ${round + 1}: ${work.replies.length} signups, ${work.revoked.size} revocations, backups of ` +
      `${statSync(made.at(-1)!.file).size} bytes in ${took}; slowest signup ${ms(slowest)}`,
  )
  for (const [number, backup] of made.entries()) {
    const restored = await cli(storeUrl, 'store', 'restore', backup.file, '--replace', '--json')
    const { data, error } = documentOf(restored)
    const name = `backup ${number + 1}`
    check(`${name} is restored${error ? `: ${error.detail}` : ''}`, data?.dry_run === false)
    const verified = await cli(storeUrl, 'audit', 'verify', '--seal', backup.seal)
    check(`${name}: audit verify --seal holds`, verified.code === 0)
    if (number === 0) checkNamed(name, data.undone.commands, work, backup)
    await checkRestored(name, storeUrl, work, backup)
  }
}

/** The last folder of Debian's programs with a server and pg_dump of one version: the test tools have no pg_dump. */
const programs = globSync('/usr/lib/postgresql/*/bin/pg_dump').map(dirname).sort().at(-1)

async function tryPostgres(folder: string, programs: string): Promise<void> {
  const path = join(folder, 'data')
  const port = await freePort()
  const asUser = (program: string, ...words: readonly string[]) =>
    unprivileged([join(programs, program), ...words])
  const run = ([command = '', ...words]: readonly string[]) =>
    execFileSync(command, words, { cwd: folder, stdio: 'pipe', encoding: 'utf8' })
  run(asUser('initdb', '-D', path, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'))
  const [command = '', ...words] = asUser(
    'postgres',
    '-D',
    path,
    '-k',
    folder,
    '-h',
    '127.0.0.1',
    '-p',
    `${port}`,
  )
  const server = spawn(command, words, { cwd: folder, stdio: 'ignore' })
  const address = ['-h', '127.0.0.1', '-p', `${port}`]
  await until(() => spawnSync(join(programs, 'pg_isready'), address).status === 0, 'PostgreSQL')
  for (
    const sql of ['CREATE ROLE partner_api LOGIN CREATEDB', 'CREATE DATABASE partner_api OWNER partner_api']
  ) {
    run([join(programs, 'psql'), ...address, '-U', 'postgres', '-c', sql])
  }
  const storeUrl = `postgres://partner_api@127.0.0.1:${port}/partner_api`
  const scene = await startScene(storeUrl, 1)
  const work = startWork(scene)
  await work.more(300, 40)
  const file = join(folder, 'partner-api.dump')
  /** Runs the commands that the program prints. */
  const shell = async (...args: string[]) => {
    const { error } = documentOf(await cli(storeUrl, 'store', ...args, '--json'))
    for (const line of error['commands'] as string[]) {
      execFileSync('sh', ['-c', line], { env: { PATH: `${programs}:/usr/bin:/bin` }, stdio: 'pipe' })
    }
  }
  const begunAt = performance.now()
  await shell('backup', file)
  const backup = { begunAt, doneAt: performance.now() }
  const { stdout: seal } = await cli(storeUrl, 'audit', 'seal')
  await work.more(0, 3)
  await scene.replicas[0]!.kill()
  await work.stop()
  await scene.store.close()
  console.log(
    `PostgreSQL: ${work.replies.length} signups, a dump of ${statSync(file).size} bytes in ${
      ms(backup.doneAt - begunAt)
    }`,
  )
  check('the dump is readable by its owner only', (statSync(file).mode & 0o77) === 0)
  await shell('restore', file)
  const restored = storeUrl.replace(/partner_api$/, 'partner_api_restored')
  check('audit verify holds', (await cli(restored, 'audit', 'verify')).code === 0)
  const later = await cli(restored, 'audit', 'verify', '--seal', seal.trim())
  check('a later seal does not hold', later.code === 1)
  const reconciled = await cli(restored, 'store', 'reconcile', '--replaced', storeUrl, '--json')
  checkNamed('the dump', documentOf(reconciled).data.undone.commands, work, backup)
  await checkRestored('the dump', restored, work, backup)
  const ended = new Promise((resolve) => server.on('close', resolve))
  server.kill('SIGINT')
  await ended
}

for (let round = 0; round < rounds; round++) await trySqlite(round)
if (programs === undefined) console.log("PostgreSQL is left out: Debian's pg_dump is not installed.")
else {
  const { path } = await createPrivateFolder('backup', false)
  await tryPostgres(path, programs)
}
process.exit()

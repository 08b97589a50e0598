/** Lists of any length: the index that each page is read by, and commands that print them in bounded memory. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { createAuditLog } from '../../adapters/stores/sql/audit.ts'
import { createAdministration } from '../../adapters/stores/sql/partners-and-keys.ts'
import type { SqlValue } from '../../adapters/stores/sql/row-format.ts'
import { openDatabase, type SqliteDatabase } from '../../adapters/stores/sqlite/database.ts'
import { createLists } from '../../adapters/stores/sqlite/lists.ts'
import { createRevisions } from '../../adapters/stores/sqlite/revisions.ts'
import { createSignups } from '../../adapters/stores/sqlite/signups.ts'
import { createSqlDatabase } from '../../adapters/stores/sqlite/sql-database.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { formatTable } from '../../cli/output/text.ts'
import { KEY_STATES } from '../../core/model.ts'
import { documentOf, runProcess, runProgram, temporaryFolder } from '../support/cli-program.ts'

const keys = 60_000
const bigPartnerKeys = 2_500

const folder = temporaryFolder()
const file = join(folder, 'store.db')
const env = { PARTNER_API_STORE: `sqlite:${file}` }
await (await openSqliteStore(file)).close()
const filler = new DatabaseSync(file)
t.teardown(() => filler.close())
filler.exec(`
  PRAGMA synchronous = OFF;
  INSERT INTO partner (slug, name, state, modules, limits, created_at)
  VALUES ('acme', 'Acme', 'active', NULL, NULL, 1), ('big', 'Big', 'active', NULL, NULL, 1);
  WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < ${keys - 1})
  INSERT INTO partner_key (id, partner, name, environment, digest, hint, state, scopes, created_at)
  SELECT printf('key-%08d', n), iif(n < ${keys - bigPartnerKeys}, 'acme', 'big'), 'Key ' || n, 'live',
    printf('%064d', n), '9xQ2', 'active', NULL, n / 10 FROM number`)

/** Enough for the program and a few pages, and for no list of this length. */
const littleMemory = { env, nodeArguments: ['--max-old-space-size=24'] }

t.test('no page of a list sorts rows or reads those of others', (t) => {
  const steps: string[] = []
  const database = openDatabase(file, { create: false })
  t.teardown(() => database.close())
  const explained: SqliteDatabase = {
    ...database,
    statement<Row extends readonly SqlValue[]>(sql: string) {
      const statement = database.statement<Row>(sql)
      const plan = database.statement<[number, number, number, step: string]>(`EXPLAIN QUERY PLAN ${sql}`)
      const explain = (parameters: SqlValue[]) => steps.push(...plan.all(...parameters).map((row) => row[3]))
      return {
        ...statement,
        all: (...parameters) => (explain(parameters), statement.all(...parameters)),
        get: (...parameters) => (explain(parameters), statement.get(...parameters)),
      }
    },
  }
  const sql = createSqlDatabase(explained, createRevisions(database, file))
  const auditLog = createAuditLog(sql)
  const administration = createAdministration(sql)
  const { listKeys } = createLists(sql)
  const signups = createSignups(explained, sql)
  const everything = { environment: 'live', states: KEY_STATES } as const
  const lists: readonly (readonly [read: () => unknown, by: string])[] = [
    [() => administration.listPartners('a', 9), 'slug>?'],
    [() => listKeys({}, undefined, 9), '(created_at,id)>(?,?)'],
    [
      () => listKeys({ ...everything, scope: 'read:plans', endsBefore: 9, unusedSince: 9 }, undefined, 9),
      '(created_at,id)>(?,?)',
    ],
    [() => listKeys({ ...everything, tag: 'eu' }, undefined, 9), 'partner_key_tagged'],
    [() => listKeys({ partner: 'big' }, undefined, 9), 'partner=? AND (created_at,id)>(?,?)'],
    [() => listKeys({ partner: 'big', endsBefore: 9 }, undefined, 9), 'partner=? AND (created_at,id)>(?,?)'],
    [() => auditLog.listAudit(0, 9), 'rowid>?'],
    [() => auditLog.listAudit(0, 9, 'big'), 'partner=? AND rowid>?'],
    [() => auditLog.auditTail(9, 'big'), 'partner=?'],
    [() => signups.listSignups(undefined, undefined, 9), '(recency,id)>(?,?)'],
    [
      () => signups.listSignups('big', undefined, 9),
      'partner=? AND environment=? AND (recency,id)>(?,?)',
    ],
  ]
  for (const [read, by] of lists) {
    steps.length = 0
    read()
    t.ok(steps.some((step) => step.startsWith('SEARCH') && step.includes(by)), `${read}: ${steps}`)
    t.same(steps.filter((step) => /^SCAN (?!page$)|TEMP B-TREE/.test(step)), [], String(read))
  }
  t.end()
})

t.test('keys list prints a list of any length in little memory', async (t) => {
  const { code, stdout, stderr } = await runProcess(['keys', 'list'], littleMemory)
  t.same([code, stderr], [0, ''])
  const lines = stdout.trimEnd().split('\n')
  t.equal(lines.length, keys + 1)
  t.match(
    lines[0],
    /^ID +PARTNER +NAME +KIND +HINT +STATE +SCOPES +ENDS +LAST USED +7 DAYS +PREDECESSOR +SUCCESSOR$/,
  )
  t.match(lines[1], /^key-00000000 +acme +Key 0 +live +…9xQ2 +active +0 +never +never +0 +– +–$/)
  t.match(lines[keys], /^key-00059999 +big +Key 59999 /)
  t.equal(lines.at(-1)?.length, lines.at(-2)?.length, 'columns stay aligned')
})

t.test('a table of more rows than a call can have arguments is aligned', (t) => {
  const size = 200_000
  const rows = Array.from({ length: size }, (_, number) => [`${number}`, 'n'])
  const lines = formatTable(['number', 'name'], rows).split('\n')
  t.same([lines.length, lines[0], lines[1], lines[size]], [
    size + 2,
    'NUMBER  NAME',
    '0       n',
    `${size - 1}  n`,
  ])
  t.end()
})

t.test('--json prints one document, however many pages it has', async (t) => {
  const { data } = documentOf(await runProgram(['keys', 'list', 'big', '--json'], { env }))
  const ids = data.map(({ id }: { id: string }) => id)
  t.equal(ids.length, bigPartnerKeys)
  t.same(ids, ids.toSorted())

  const copy = join(folder, 'damaged.db')
  filler.exec(`VACUUM INTO '${copy}'`)
  const damaged = new DatabaseSync(copy)
  damaged.exec(`UPDATE partner_key SET allow = 'no JSON' WHERE id = 'key-00059000'`)
  damaged.close()
  const broken = await runProgram(['keys', 'list', 'big', '--json', '--store', `sqlite:${copy}`])
  t.equal(broken.code, 1)
  t.equal(documentOf(broken).data.length, 1400, 'the rows before the error')
  t.match(documentOf(broken).error, { code: 'internal', detail: 'JSON' })
})

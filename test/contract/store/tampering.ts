/** Detection of changes that were made to the database without the store. */
import { type AuditDifference, verifyAuditLog, verifyChain } from '../../../core/audit/verify.ts'
import type { Store } from '../../../core/ports/store.ts'
import { apply, createKeys, createPartners, fails, industry, partner, stamp, T0 } from './samples.ts'
import type { TestContext } from './suites.ts'

/** A store in a database, and direct access to the database. */
export interface Tampered {
  readonly store: Store
  tamper(sql: string): Promise<unknown>
  /** The name of a table in SQL. */
  table(name: string): string
  /** Generated columns of an audit entry, with the SQL that computes them. */
  readonly derived: Readonly<Record<string, string>>
  /** SQL that creates and drops a trigger `undo`, which reverts the state and the name of every changed key. */
  readonly undo: { readonly create: string; readonly drop: string }
}

/** A change of a row, the kind and id of the difference that an audit reports, SQL for both ways, and the side it lacks. */
type Tampering = readonly [
  what: string,
  found: string,
  sql: string,
  undo: string,
  missing?: keyof AuditDifference,
]

/** @param open Creates an empty store. */
export async function tamperingContract(t: TestContext, open: () => Promise<Tampered>): Promise<void> {
  await t.test('a changed row is reported', async (t) => {
    const { store, tamper, table } = await open()
    const keys = table('partner_key')
    const partners = table('partner')
    await createPartners(store, 'initech')
    await createKeys(store, 'acme', 'globex')
    await apply(store, { type: 'key.revoked', id: 'acme-live' }, {
      type: 'partner.suspended',
      slug: 'globex',
    })
    await apply(store, {
      type: 'key.rotated',
      id: 'globex-live',
      successorId: 'globex-test',
      retiresAt: T0,
      ended: true,
    })
    const hook = { url: 'https://a.example', events: ['key.issued'], partner: 'acme', createdAt: T0 } as const
    const more = { state: 'active', secrets: [], failingSince: undefined } as const
    for (const id of ['whk_1', 'whk_2']) {
      await store.webhooks.changeWebhook(id, 'webhook.created', stamp, () => ({ id, ...hook, ...more }))
    }
    await store.webhooks.changeWebhook('whk_2', 'webhook.removed', stamp, () => undefined)
    const set = (name: string, id: string, column: string, value: string) =>
      `UPDATE ${name} SET ${column} = ${value} WHERE ${name === partners ? 'slug' : 'id'} = '${id}'`
    const change = (name: string, id: string, column: string, to: string, from: string) =>
      [set(name, id, column, to), set(name, column === 'id' ? to.slice(1, -1) : id, column, from)] as const
    const columns = 'partner, name, environment, digest, hint, state, scopes, created_at'
    const add = (id: string, from: string) =>
      `INSERT INTO ${keys} (id, ${columns}) SELECT '${id}', ${columns} FROM ${keys} WHERE id = '${from}'`
    const remove = (id: string) => `DELETE FROM ${keys} WHERE id = '${id}'`
    const digest = `'${(await store.findKey('acme-test'))!.key.digest}'`
    const hooks = table('webhook')
    const tamperings: readonly Tampering[] = [
      [
        'a revoked key is active',
        'key acme-live',
        ...change(keys, 'acme-live', 'state', `'active'`, `'revoked'`),
      ],
      [
        'a rotated key is active',
        'key globex-live',
        ...change(keys, 'globex-live', 'state', `'active'`, `'retired'`),
      ],
      [
        'a key has more scopes',
        'key acme-test',
        ...change(keys, 'acme-test', 'scopes', `'read:plans'`, 'NULL'),
      ],
      ['a key has another digest', 'key acme-test', ...change(keys, 'acme-test', 'digest', `'f'`, digest)],
      [
        'a partner is resumed',
        'partner globex',
        ...change(partners, 'globex', 'state', `'active'`, `'suspended'`),
      ],
      ['a key was added', 'key added', add('added', 'acme-test'), remove('added'), 'expected'],
      [
        'an id has a space',
        'key added later',
        add('added later', 'acme-test'),
        remove('added later'),
        'expected',
      ],
      [
        'a key was deleted',
        'key acme-test',
        `${add('kept', 'acme-test')}; ${remove('acme-test')}`,
        `${add('acme-test', 'kept')}; ${remove('kept')}`,
        'stored',
      ],
      [
        'a partner was deleted',
        'partner initech',
        `DELETE FROM ${partners} WHERE slug = 'initech'`,
        `INSERT INTO ${partners} (slug, name, state, modules, created_at)
          VALUES ('initech', '${partner().name}', 'active', NULL, ${T0})`,
        'stored',
      ],
      [
        'a webhook has another URL',
        'webhook whk_1',
        ...change(hooks, 'whk_1', 'url', `'https://b'`, `'${hook.url}'`),
      ],
      ['a removed webhook is back', 'webhook whk_1', ...change(hooks, 'whk_1', 'id', `'whk_2'`, `'whk_1'`)],
    ]
    const differences = async () => (await verifyAuditLog(store)).differences
    t.strictSame(await differences(), [], 'before tampering')
    for (const [what, wanted, sql, undo, missing] of tamperings) {
      await tamper(sql)
      const found = (await differences()).filter(({ id }) => id !== 'kept' && id !== 'whk_2')
      t.strictSame(found.map(({ kind, id }) => `${kind} ${id}`), [wanted], what)
      if (missing !== undefined) t.equal(found[0]?.[missing], undefined, `${what}: ${missing}`)
      await tamper(undo)
      t.strictSame(await differences(), [], `${what}, undone`)
    }

    const early = `${add('early', 'acme-test')}; ${set(keys, 'early', 'created_at', '-9223372036854775808')}`
    await tamper(early)
    t.ok(await fails(() => verifyAuditLog(store)), 'a key from before every instant is read')
    await tamper(`DELETE FROM ${keys} WHERE id = 'early'`)

    await tamper(set(keys, 'acme-test', 'scopes', `'read:plans'`))
    await apply(store, { type: 'key.disabled', id: 'acme-test' })
    const { sequence } = await store.auditHead()
    const [found, ...others] = await differences()
    t.strictSame(
      [found?.id, found?.brokenAt, others],
      ['acme-test', sequence, []],
      'a later entry does not hide the change',
    )
    await store.close()
  })

  await t.test('a log truncated together with its head fails against an exported seal', async (t) => {
    const { store, tamper, table } = await open()
    await createKeys(store, 'acme')
    const before = await store.auditHead()
    await apply(store, { type: 'key.revoked', id: 'acme-live' })
    const seal = await store.auditHead()
    for (const kept of [before, seal]) t.equal((await verifyAuditLog(store, kept)).sealMatches, true)
    t.equal(
      (await verifyAuditLog(store, { ...before, hash: seal.hash })).sealMatches,
      false,
      'a wrong hash does not match',
    )
    await tamper(`
      DELETE FROM ${table('audit')} WHERE sequence = ${seal.sequence};
      UPDATE ${table('store')} SET audit_sequence = ${before.sequence}, audit_hash = '${before.hash}';
      UPDATE ${table('partner_key')} SET state = 'active', revoked_at = NULL WHERE id = 'acme-live'`)
    const { brokenAt: broken, differences } = await verifyAuditLog(store)
    t.strictSame([broken, differences], [undefined, []], 'the store alone cannot detect it')
    t.equal((await verifyAuditLog(store, before)).sealMatches, true)
    t.equal((await verifyAuditLog(store, seal)).sealMatches, false)
    await store.close()
  })

  await t.test('a change that ends access is refused where the database reverts it', async (t) => {
    const { store, tamper, undo } = await open()
    await createKeys(store, 'acme')
    const revision = await store.revision()
    const head = await store.auditHead()
    await tamper(undo.create)
    t.ok(await fails(() => apply(store, { type: 'key.revoked', id: 'acme-live' })), 'a revocation')
    t.ok(
      await fails(() => apply(store, { type: 'partner.removed', slug: 'acme' })),
      'a removal that revokes keys',
    )
    t.ok(await fails(() => apply(store, { type: 'key.disabled', id: 'acme-live' })), 'a disabled key')
    const { key } = (await store.findKey('acme-test'))!
    t.equal(await apply(store, { ...key, type: 'key.updated', name: 'New' }), true, 'another change')
    const found = (await verifyAuditLog(store)).differences.map(({ kind, id }) => [kind, id])
    t.strictSame(found, [['key', 'acme-test']], 'which is found later')
    t.strictSame(await store.auditIntruders(), ['undo'])
    await tamper(undo.drop)
    t.strictSame(await store.auditIntruders(), [])
    t.equal((await store.findPartner('acme'))?.state, 'active')
    t.equal((await store.auditHead()).sequence, head.sequence + 1, 'nothing else was recorded')
    t.ok((await store.revision()).facts !== revision.facts, 'the applied change gave a new revision')
    t.equal(await apply(store, { type: 'key.revoked', id: 'acme-live' }), true)
    await store.close()
  })

  await t.test('foreign views and triggers are reported', async (t) => {
    const { store, tamper, table } = await open()
    t.strictSame(await store.auditIntruders(), [], 'the store’s own are not')
    await tamper(`
      ALTER TABLE ${table('signup')} RENAME TO signup_hidden;
      CREATE VIEW ${table('signup')} AS SELECT * FROM ${table('signup_hidden')}`)
    t.strictSame(await store.auditIntruders(), ['signup'])
    await store.close()
  })

  await t.test('changed, deleted, moved and added entries are located', async (t) => {
    const { store, tamper, table, derived } = await open()
    await createKeys(store, 'acme', 'globex')
    await apply(store, { type: 'scope.granted', id: 'acme-live', scope: 'read:plans' })
    await store.importContent('industries', [industry('a')], { ...stamp, now: T0 })
    await store.removeContent('industries', ['a'], stamp)
    const audit = table('audit')
    const head = table('store')
    const columns = 'sequence id at actor type partner key_id subject before after hash'.split(' ')
    const written = [...columns, ...Object.keys(derived)]
    /** SQL that adds a copy of the rows of `from`. */
    const add = (changed: Readonly<Record<string, string>>, from: string) =>
      `INSERT INTO ${audit} (${written})
      SELECT ${written.map((column) => changed[column] ?? derived[column] ?? column)} FROM ${from}`
    await tamper(`
      CREATE TABLE ${table('saved_audit')} AS SELECT ${columns} FROM ${audit};
      CREATE TABLE ${table('saved_head')} AS SELECT audit_sequence, audit_hash FROM ${head}`)
    const query = { types: [], after: undefined, limit: 100 }
    const reported = await store.listActivity('acme', query, T0 * 2)

    const changes: (readonly [sql: string, brokenAt: number])[] = []
    for (const sequence of [1, 6, 9]) {
      const own = `WHERE sequence = ${sequence}`
      for (const column of columns) {
        const value = { sequence: '99', at: 'at + 1' }[column] ?? `coalesce(${column}, '') || 'x'`
        changes.push([`UPDATE ${audit} SET ${column} = ${value} ${own}`, sequence])
      }
      const from = `DELETE FROM ${audit} WHERE sequence >= ${sequence}`
      changes.push(
        [`DELETE FROM ${audit} ${own}`, sequence],
        [from, sequence],
        [`${from}; UPDATE ${head} SET audit_sequence = ${sequence - 1}`, Math.max(1, sequence - 1)],
      )
    }
    const move = (from: number, to: number) =>
      `UPDATE ${audit} SET sequence = ${to} WHERE sequence = ${from};`
    changes.push([`${move(4, -1)} ${move(5, 4)} ${move(-1, 5)}`, 4])
    changes.push([
      `DELETE FROM ${audit} WHERE sequence = 8; ${move(9, 8)} UPDATE ${head} SET audit_sequence = 8`,
      8,
    ])
    for (
      const number of ['-9223372036854775807', '-9007199254740991', '-1', '0', '10', '1152921504606846976']
    ) {
      const row = `${audit} WHERE type = 'key.issued' AND key_id = 'acme-live'`
      changes.push([add({ sequence: number, id: `'added'` }, row), Number(number) > 9 ? 10 : 1])
    }
    changes.push([`UPDATE ${head} SET audit_sequence = 10`, 10], [`UPDATE ${head} SET audit_hash = 'x'`, 9])
    for (const [sql, brokenAt] of changes) {
      await tamper(sql)
      t.equal(await verifyChain(store, store.sha256), brokenAt, sql)
      if (sql.startsWith('INSERT')) {
        t.strictSame(
          await store.listActivity('acme', query, T0 * 2),
          reported,
          'the added entry is not in the activity report',
        )
      }
      await tamper(`
        DELETE FROM ${audit};
        ${add({}, table('saved_audit'))};
        UPDATE ${head} SET audit_sequence = (SELECT audit_sequence FROM ${table('saved_head')}),
          audit_hash = (SELECT audit_hash FROM ${table('saved_head')})`)
    }
    t.equal(await verifyChain(store, store.sha256), undefined, 'the log is intact after every reversal')
    await store.close()
  })
}

/** What an audit reports about a database that was changed without the store. */
import { verifyChain } from '../../../core/audit/chain.ts'
import { type AuditDifference, verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Store } from '../../../core/ports/store.ts'
import { apply, createKeys, createPartners, fails, industry, partner, stamp, T0 } from './samples.ts'
import type { TestContext } from './suites.ts'

/** A store in a database, and how to write there past it. */
export interface Tampered {
  readonly store: Store
  tamper(sql: string): Promise<unknown>
  /** The name of a table in SQL. */
  table(name: string): string
  /** Further columns of an audit entry, with the SQL that they follow from. */
  readonly derived: Readonly<Record<string, string>>
  /** SQL that makes and drops a trigger called `undo`, which keeps keys from being revoked. */
  readonly undo: { readonly create: string; readonly drop: string }
}

/** Each way to change a row, what an audit says of it, and how it is undone. */
type Tampering = readonly [what: string, sql: string, undo: string, found: Partial<AuditDifference>]

/** @param open Makes an empty store. */
export async function tamperingContract(t: TestContext, open: () => Promise<Tampered>): Promise<void> {
  await t.test('a changed row is named', async (t) => {
    const { store, tamper, table } = await open()
    const [keys, partners] = [table('partner_key'), table('partner')]
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
    const set = (change: string, id: string) => `UPDATE ${keys} SET ${change} WHERE id = '${id}'`
    const columns = 'partner, name, environment, digest, hint, state, scopes, created_at'
    const add = (id: string, from: string) =>
      `INSERT INTO ${keys} (id, ${columns}) SELECT '${id}', ${columns} FROM ${keys} WHERE id = '${from}'`
    const digest = (await store.findKey('acme-test'))!.key.digest
    const tamperings: readonly Tampering[] = [
      [
        'a key is no longer revoked',
        set(`state = 'active'`, 'acme-live'),
        set(`state = 'revoked'`, 'acme-live'),
        {
          kind: 'key',
          id: 'acme-live',
        },
      ],
      [
        'a key that was replaced works on',
        set(`state = 'active'`, 'globex-live'),
        set(`state = 'retired'`, 'globex-live'),
        {
          kind: 'key',
          id: 'globex-live',
        },
      ],
      ['a key has more scopes', set('scopes = 255', 'acme-test'), set('scopes = 0', 'acme-test'), {
        kind: 'key',
        id: 'acme-test',
      }],
      [
        'another secret opens a key',
        set(`digest = '${'f'.repeat(64)}'`, 'acme-test'),
        set(`digest = '${digest}'`, 'acme-test'),
        { kind: 'key', id: 'acme-test' },
      ],
      [
        'a partner is no longer suspended',
        `UPDATE ${partners} SET state = 'active' WHERE slug = 'globex'`,
        `UPDATE ${partners} SET state = 'suspended' WHERE slug = 'globex'`,
        { kind: 'partner', id: 'globex' },
      ],
      ['a key that no entry issued', add('added', 'acme-test'), `DELETE FROM ${keys} WHERE id = 'added'`, {
        kind: 'key',
        id: 'added',
        expected: undefined,
      }],
      [
        'a key whose id contains a space',
        add('added later', 'acme-test'),
        `DELETE FROM ${keys} WHERE id = 'added later'`,
        { kind: 'key', id: 'added later', expected: undefined },
      ],
      [
        'a key that is gone',
        `${add('kept', 'acme-test')}; DELETE FROM ${keys} WHERE id = 'acme-test'`,
        `${add('acme-test', 'kept')}; DELETE FROM ${keys} WHERE id = 'kept'`,
        { kind: 'key', id: 'acme-test', stored: undefined },
      ],
      [
        'a partner that is gone',
        `DELETE FROM ${partners} WHERE slug = 'initech'`,
        `INSERT INTO ${partners} (slug, name, state, modules, created_at)
          VALUES ('initech', '${partner().name}', 'active', 0, ${T0})`,
        { kind: 'partner', id: 'initech', stored: undefined },
      ],
    ]
    const differences = async () => (await verifyAuditLog(store)).differences
    t.strictSame(await differences(), [], 'before')
    for (const [what, sql, undo, wanted] of tamperings) {
      await tamper(sql)
      const found = (await differences()).filter(({ id }) => id !== 'kept')
      t.equal(found.length, 1, what)
      for (const [member, value] of Object.entries(wanted)) {
        t.equal(found[0]?.[member as keyof AuditDifference], value, `${what}: ${member}`)
      }
      await tamper(undo)
      t.strictSame(await differences(), [], `${what}, undone`)
    }

    await tamper(set('scopes = 255', 'acme-test'))
    await apply(store, { type: 'key.disabled', id: 'acme-test' })
    const { sequence } = await store.auditHead()
    const [found, ...others] = await differences()
    t.strictSame(
      [found?.id, found?.brokenAt, others],
      ['acme-test', sequence, []],
      'an entry does not cover it',
    )
    await store.close()
  })

  await t.test('a log that was cut off together with its head fails against an earlier seal', async (t) => {
    const { store, tamper, table } = await open()
    await createKeys(store, 'acme')
    const before = await store.auditHead()
    await apply(store, { type: 'key.revoked', id: 'acme-live' })
    const seal = await store.auditHead()
    for (const kept of [before, seal]) t.equal((await verifyAuditLog(store, kept)).sealMatches, true)
    t.equal((await verifyAuditLog(store, { ...before, hash: seal.hash })).sealMatches, false, 'another entry')
    await tamper(`
      DELETE FROM ${table('audit')} WHERE sequence = ${seal.sequence};
      UPDATE ${table('store')} SET audit_sequence = ${before.sequence}, audit_seal = '${before.hash}';
      UPDATE ${table('partner_key')} SET state = 'active', revoked_at = NULL WHERE id = 'acme-live'`)
    const { brokenAt: broken, differences } = await verifyAuditLog(store)
    t.strictSame([broken, differences], [undefined, []], 'by itself the store cannot show it')
    t.equal((await verifyAuditLog(store, before)).sealMatches, true)
    t.equal((await verifyAuditLog(store, seal)).sealMatches, false)
    await store.close()
  })

  await t.test('a change that the database reverts is refused', async (t) => {
    const { store, tamper, undo } = await open()
    await createKeys(store, 'acme')
    const [revision, head] = [await store.revision(), await store.auditHead()]
    await tamper(undo.create)
    t.ok(await fails(() => apply(store, { type: 'key.revoked', id: 'acme-live' })), 'a revocation')
    t.ok(await fails(() => apply(store, { type: 'partner.removed', slug: 'acme' })), 'one that follows')
    t.equal(await apply(store, { type: 'key.disabled', id: 'acme-test' }), true, 'another change')
    t.strictSame(await store.auditIntruders?.(), ['undo'])
    await tamper(undo.drop)
    t.strictSame(await store.auditIntruders?.(), [])
    t.equal((await store.findPartner('acme'))?.state, 'active')
    t.equal((await store.auditHead()).sequence, head.sequence + 1, 'nothing else was noted')
    t.ok((await store.revision()).facts !== revision.facts, 'and what was kept moved the revision')
    t.equal(await apply(store, { type: 'key.revoked', id: 'acme-live' }), true)
    await store.close()
  })

  await t.test('views and triggers on any table are named', async (t) => {
    const { store, tamper, table } = await open()
    t.strictSame(await store.auditIntruders?.(), [], 'what the store made itself is not')
    await tamper(`
      ALTER TABLE ${table('signup')} RENAME TO signup_hidden;
      CREATE VIEW ${table('signup')} AS SELECT * FROM ${table('signup_hidden')}`)
    t.strictSame(await store.auditIntruders?.(), ['signup'])
    await store.close()
  })

  await t.test('entries that were changed, deleted, moved or added are found at their places', async (t) => {
    const { store, tamper, table, derived } = await open()
    await createKeys(store, 'acme', 'globex')
    await apply(store, { type: 'scope.granted', id: 'acme-live', scope: 'read:plans' })
    await store.importContent('industries', [industry('a')], { ...stamp, now: T0 })
    await store.removeContent('industries', ['a'], stamp)
    const [audit, head] = [table('audit'), table('store')]
    const columns = 'sequence id at actor type partner key_id subject before after seal'.split(' ')
    const written = [...columns, ...Object.keys(derived)]
    /** Adds a copy of a row of `from`. */
    const add = (changed: Readonly<Record<string, string>>, from: string) =>
      `INSERT INTO ${audit} (${written})
      SELECT ${written.map((column) => changed[column] ?? derived[column] ?? column)} FROM ${from}`
    await tamper(`
      CREATE TABLE ${table('saved_audit')} AS SELECT ${columns} FROM ${audit};
      CREATE TABLE ${table('saved_head')} AS SELECT audit_sequence, audit_seal FROM ${head}`)
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
    changes.push(
      [`UPDATE ${head} SET audit_sequence = 10`, 10],
      [`UPDATE ${head} SET audit_seal = 'x'`, 9],
    )
    for (const [sql, brokenAt] of changes) {
      await tamper(sql)
      t.equal(await verifyChain(store, store.sha256), brokenAt, sql)
      if (sql.startsWith('INSERT')) {
        t.strictSame(await store.listActivity('acme', query, T0 * 2), reported, 'and is not reported')
      }
      await tamper(`
        DELETE FROM ${audit};
        ${add({}, table('saved_audit'))};
        UPDATE ${head} SET audit_sequence = (SELECT audit_sequence FROM ${table('saved_head')}),
          audit_seal = (SELECT audit_seal FROM ${table('saved_head')})`)
    }
    t.equal(await verifyChain(store, store.sha256), undefined, 'all is undone')
    await store.close()
  })
}

import { createKeyAdministration } from '../../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../../core/admin/partners.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Key, Partner } from '../../../core/model.ts'
import { readRows, type Store } from '../../../core/ports/store.ts'
import { gatherFew } from './samples.ts'
import type { Check } from './suites.ts'

const operator = { actor: 'grace' }

/** What operators note about partners and keys. */
export async function detailsContract(check: Check): Promise<void> {
  await check('lists select by tag, in pages of any size', async (t, store) => {
    const { partners, keys } = administer(store)
    const tagged: Partner[] = []
    const issued: Key[] = []
    for (const [index, tags] of [['a_b', 'eu'], ['axb'], [], ['eu'], ['a_b', 'a_b.c']].entries()) {
      const slug = `partner-${index}`
      tagged.push(await partners.create({ slug, name: slug, modules: [], tags }))
      for (const environment of ['live', 'test'] as const) {
        issued.push((await keys.issue({ partner: slug, name: 'Key', environment, tags })).key)
      }
    }
    const sorted = issued.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    for (const tag of ['a_b', 'axb', 'eu', 'e', 'a_b.c', 'EU', 'e%', '%', '\\', '']) {
      for (const limit of [1, 2, 3, 100]) {
        const ofPartners = readRows<Partner>(
          (after, size) => store.listPartners(after?.slug, size, tag),
          limit,
        )
        const wanted = tagged.filter(({ tags }) => tags.includes(tag))
        t.strictSame(await gatherFew(ofPartners), wanted, `partners with ${tag}, ${limit} a page`)
        for (
          const more of [{}, { environment: 'live' as const }, { partner: 'partner-0' }, {
            scope: 'read:orders',
          }]
        ) {
          const ofKeys = readRows<Key>((after, size) => store.listKeys({ tag, ...more }, after, size), limit)
          const selected = sorted.filter((key) =>
            key.tags.includes(tag) && !('scope' in more) &&
            key.environment === (more.environment ?? key.environment) &&
            key.partner === (more.partner ?? key.partner)
          )
          t.strictSame(
            await gatherFew(ofKeys),
            selected,
            `keys with ${tag}, ${limit} a page, ${JSON.stringify(more)}`,
          )
        }
      }
    }
  })

  await check(
    'the audit log has details, and only the names of the contact and the note',
    async (t, store) => {
      const { partners, keys } = administer(store)
      await partners.create({
        slug: 'acme',
        name: 'Acme',
        modules: [],
        contact: 'old@acme.example',
        note: 'Secret plans',
      })
      const { key } = await keys.issue({
        partner: 'acme',
        name: 'Key',
        environment: 'live',
        owner: 'Web',
        tags: ['b', 'a'],
      })
      const { facts } = await store.revision()
      await partners.update('acme', { contact: 'new@acme.example', selfService: ['rotate'] })
      t.ok((await store.revision()).facts !== facts, 'the revision of facts moves')
      await partners.update('acme', { note: 'Other plans' })
      await partners.update('acme', { note: 'Other plans', contact: 'new@acme.example' })
      await partners.update('acme', { note: null, contact: null, externalId: 'crm-1', tags: ['eu'] })
      await partners.suspend('acme')
      await keys.update(key.id, { owner: null, tags: [] })
      const { key: successor } = await keys.rotate(key.id)
      t.strictSame([successor.owner, successor.tags], [undefined, []])
      const entries = await store.listAudit(0, 100)
      t.strictSame(entries.map(({ type, subject }) => `${type} ${subject ?? ''}`), [
        'partner.created contact note',
        'key.issued ',
        'partner.updated contact',
        'partner.updated note',
        'partner.updated contact note',
        'partner.suspended ',
        'key.updated ',
        'key.issued ',
        'key.rotated ',
      ])
      const text = JSON.stringify(entries)
      t.ok(!/acme\.example|plans/.test(text), 'no entry has their values')
      for (const value of ['crm-1', 'eu', 'rotate', 'Web']) t.ok(text.includes(value), value)
      t.strictSame((await verifyAuditLog(store)).differences, [])
    },
  )
}

function administer(store: Store) {
  return {
    partners: createPartnerAdministration(store, operator),
    keys: createKeyAdministration(store, operator),
  }
}

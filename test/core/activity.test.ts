/** Sections 4 and 10, reports: what happened comes up in the activity, and nobody's data in any report. */
import t from 'tap'
import type { Heard, Tester } from '../contract/http/service.ts'
import { memory, sqliteFile } from '../contract/http/stores.ts'
import { canary, places, withService } from '../support/partner-service.ts'

const summary = '/partner/reports/summary?partner=demo'
const activity = '/partner/reports/activity?partner=demo'

function invalid(t: Tester, heard: Heard, parameters: readonly string[], what: string): void {
  t.strictSame([heard.status, heard.json.code, places(heard)], [400, 'invalid_parameter', parameters], what)
}

for (const [name, open] of Object.entries({ memory, sqlite: sqliteFile })) {
  await t.test(`${name}: the activity tells all that happened, newest first`, (t) =>
    withService(open, async (service) => {
      const { ask, post, store, world } = service
      const body = {
        partner: 'demo',
        email: 'jane.canary@example.com',
        name: 'Jane van der Canary',
        plan: 'starter',
      }
      const sent = await post('/partner/signups', { ...body, country: 'de', company: 'Canary Company' })
      await post('/partner/signups', body, { key: 'demo test' })
      await post('/partner/signups', { ...body, partner: 'acme' }, { key: 'acme full' })
      const issued = await world.issue({ scopes: ['read:profiles'] })
      await world.keyRing.disable(issued.id)
      await world.keyRing.enable(issued.id)
      await world.keyRing.grant(issued.id, ['read:banner'])
      await world.keyRing.remove(issued.id, ['read:profiles'])
      await world.keyRing.revoke(issued.id)
      await world.partners.deactivate('demo', ['pricing'])
      await world.partners.activate('demo', ['pricing'])

      const heard = await ask(`${activity}&limit=100`)
      const rows: readonly { id: string; type: string; occurred_at: string; subject: object }[] =
        heard.json.data
      t.notOk(heard.headers.has('link'))
      t.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'each row once')
      t.strictSame(rows.filter(({ id }) => !/^act_/.test(id)), [])
      const subjects = (type: string) => rows.filter((row) => row.type === type).map(({ subject }) => subject)
      t.strictSame(
        subjects('signup.created').map((subject) => Object.values(subject)[0]),
        [sent.json.data.id],
        'neither tests nor others',
      )
      t.strictSame(subjects('key.expired').map((one) => Object.values(one)[0]), [
        world.keys['demo expired'].id,
      ])

      const others = await ask('/partner/reports/activity?partner=acme&limit=100', { key: 'acme full' })
      const ids = new Set(rows.map(({ id }) => id))
      t.ok(others.json.data.length > 0)
      t.strictSame(
        others.json.data.filter(({ id }: { id: string }) => ids.has(id)),
        [],
        'others have their own',
      )

      await t.test('page by page', async (t) => {
        for (
          const [query, wanted] of [
            ['', rows],
            [
              '&type=key.issued&type=signup.created',
              rows.filter(({ type }) => /^key.issued|signup/.test(type)),
            ],
            ['&type=scope.removed', rows.filter(({ type }) => type === 'scope.removed')],
          ] as const
        ) {
          const found: { readonly id: string }[] = []
          let next: string | undefined = `${activity}&limit=3${query}`
          while (next !== undefined) {
            const { json, headers }: Heard = await ask(next)
            found.push(...json.data)
            const { limit, has_more: more, next_cursor: cursor } = json.page
            t.strictSame([limit, more], [3, cursor !== null])
            t.ok(json.data.length === 3 || !more, 'pages are full')
            const link: string | undefined = headers.get('link')
            t.equal(link === undefined, !more)
            next = link && `/partner/reports/activity${/^<(\?.*)>; rel="next"$/.exec(link)?.[1]}`
            // Something new comes before what was read.
            await store.createSignup(canary(service, { createdAt: Date.now() + 5 }), undefined)
          }
          t.strictSame(found.filter(({ id }) => ids.has(id)), wanted, query)
        }
      })

      await t.test('cursors belong to their list', async (t) => {
        const cursor = encodeURIComponent(
          (await ask(`${activity}&limit=1&type=key.issued`)).json.page.next_cursor,
        )
        const use = async (query: string, key?: 'acme full') =>
          await ask(`/partner/reports/activity?${query}&cursor=${cursor}`, key && { key })
        t.equal((await use('partner=demo&type=key.issued&limit=7')).status, 200, 'with any limit')
        t.equal(
          (await use('partner=demo&type=key.issued&type=key.issued')).status,
          200,
          'with the same types',
        )
        for (
          const query of [
            'partner=demo',
            'partner=demo&type=key.revoked',
            'partner=demo&type=key.issued&type=key.revoked',
          ]
        ) {
          t.equal((await use(query)).json.code, 'invalid_cursor', query)
        }
        t.equal((await use('partner=acme&type=key.issued', 'acme full')).json.code, 'invalid_cursor')
        const foreign = await ask('/public/profiles?partner=demo&limit=1')
        const other = await ask(`${activity}&cursor=${encodeURIComponent(foreign.json.page.next_cursor)}`)
        t.equal(other.json.code, 'invalid_cursor', 'of another endpoint')
        for (const altered of [cursor.slice(1), `${cursor}A`, 'x', '', '.'.repeat(40)]) {
          t.equal((await ask(`${activity}&type=key.issued&cursor=${altered}`)).status, 400, altered)
        }
      })

      await t.test('parameters', async (t) => {
        t.equal((await ask(activity)).json.page.limit, 20)
        for (const limit of ['0', '101', '-1', '1.5', '', 'x', '1e1']) {
          invalid(t, await ask(`${activity}&limit=${limit}`), ['limit'], `limit=${limit}`)
        }
        for (const type of ['', 'signup', 'key.*', 'KEY.ISSUED', 'constructor']) {
          invalid(t, await ask(`${activity}&type=${type}`), ['type'], `type=${type}`)
        }
        const many = '&type=key.issued'.repeat(20)
        t.equal((await ask(activity + many)).status, 200)
        invalid(t, await ask(`${activity}${many}&type=key.issued`), ['type'], '21 types')
        invalid(t, await ask(`${activity}&from=2024-01-01&limit=0`), ['from', 'limit'], 'all at once')
      })

      const etag = heard.headers.get('etag') ?? ''
      t.match(etag, /^"[^"]+"$/)
      const path = '/partner/reports/activity?partner=acme'
      const first = await ask(path, { key: 'acme full' })
      const again = await ask(path, {
        key: 'acme full',
        headers: { 'if-none-match': first.headers.get('etag')! },
      })
      t.strictSame([again.status, again.text], [304, ''], 'what has not changed is not told again')
      await post('/partner/signups', { ...body, partner: 'acme' }, { key: 'acme full' })
      const changed = await ask(path, {
        key: 'acme full',
        headers: { 'if-none-match': first.headers.get('etag')! },
      })
      t.equal(changed.status, 200, 'what has changed is told at once')
      t.equal((await ask(path, { key: 'acme full', method: 'HEAD' })).status, 200)
    }))

  await t.test(`${name}: no report says who signed up`, (t) =>
    withService(open, async (service) => {
      const { ask, store } = service
      const secrets = ['canary', 'Canaria', 'Nominata', '203.0.113', 'tester']
      for (let n = 0; n < 30; n++) await store.createSignup(canary(service, { profile: 'bare' }), undefined)
      let seen = 0
      for (const query of [summary, `${activity}&limit=100`, `${activity}&limit=10&type=signup.created`]) {
        let next: string | undefined = query
        while (next !== undefined) {
          const { text, headers, status }: Heard = await ask(next)
          t.equal(status, 200)
          const everything = [...headers].join('\n') + text
          for (const secret of secrets) {
            t.notOk(everything.toLowerCase().includes(secret.toLowerCase()), secret)
          }
          seen += text.split('c***@c***.example').length - 1
          const link: string | undefined = headers.get('link')
          next = link && `/partner/reports/activity${/^<(\?.*)>/.exec(link)?.[1]}`
        }
      }
      t.equal(seen, 60, 'though all of them are told of')
    }))
}

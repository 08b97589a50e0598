import { utcDay } from '../../../core/lib/time.ts'
import type { IdempotencyReservation, Signup } from '../../../core/ports/signups.ts'
import { readRows, type Store } from '../../../core/ports/store.ts'
import type { Webhook, WebhookChangeType } from '../../../core/ports/webhooks.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import {
  apply,
  createKeys,
  createPartners,
  DAY,
  fails,
  gatherFew,
  key,
  reservation,
  signup,
  stamp,
  T0,
} from './samples.ts'
import type { Check } from './suites.ts'

/** Every member of a signup, with characters that encodings easily lose. */
const fullSignup = signup('full', {
  email: 'ada+“x”@example.org',
  name: 'Ada \u{1f600} \u0000 \ud800',
  company: '',
  country: 'GB',
  plan: 'pro',
  profile: 'full',
  locale: 'en-GB-oxendict',
  message: 'Line one\nline two\t"quoted" \\ and a \u2028 separator',
  consentAt: 0,
  // Parsed, as a literal would set the prototype.
  metadata: JSON.parse('{"b":"1","a":"","__proto__":"own","10":"x","9":"y"}'),
})

async function prepare(store: Store): Promise<void> {
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
}

const list = async (store: Store, partner?: string): Promise<readonly Signup[]> =>
  await store.listSignups(partner, undefined, 1000)

/** Signups, stored once per idempotency key. */
export async function signupsContract(check: Check): Promise<void> {
  await check('signups are read as they were written, and change no revision', async (t, store) => {
    await prepare(store)
    const before = await store.revision()
    const metadata: Record<string, string> = { source: 'form' }
    t.strictSame(await store.createSignup(fullSignup, undefined), { outcome: 'created' })
    t.strictSame(await store.createSignup(signup('bare', { metadata }), reservation()), {
      outcome: 'created',
    })
    metadata.source = 'changed by the caller'
    t.strictSame(await list(store), [signup('bare', { metadata: { source: 'form' } }), fullSignup])
    t.equal(JSON.stringify((await list(store))[1]), JSON.stringify(fullSignup), 'without additional members')
    t.strictSame(await store.revision(), before)
  })

  await check(
    'a signup is created once per idempotency key, then replayed, and another body is a mismatch',
    async (t, store) => {
      await prepare(store)
      const first = signup('first')
      t.strictSame(await store.createSignup(first, reservation()), { outcome: 'created' })
      const replay = { outcome: 'replayed', id: first.id, createdAt: T0 } as const
      for (const id of ['again', 'first']) {
        t.strictSame(await store.createSignup(signup(id, { createdAt: T0 + 5 }), reservation()), replay)
      }
      const other = reservation({ fingerprint: 'e'.repeat(64) })
      t.strictSame(await store.createSignup(signup('other'), other), { outcome: 'mismatch' })
      t.strictSame(
        await store.createSignup(signup('again'), reservation()),
        replay,
        'the mismatch changed nothing',
      )
      t.strictSame(await list(store), [first])
    },
  )

  await check('signups of one moment are stored or refused one by one', async (t, store) => {
    await createKeys(store, 'acme', 'globex')
    const good = (id: string) => signup(id, { keyId: 'acme-live' })
    await store.createSignup(good('before'), reservation({ key: 'before' }))
    await store.createSignup(good('old'), reservation({ key: 'old' }))
    const outcomeOf = async (sent: Signup, used?: IdempotencyReservation): Promise<string> => {
      try {
        return (await store.createSignup(sent, used)).outcome
      } catch (error) {
        return String((error as { readonly code?: unknown }).code)
      }
    }
    const other = { fingerprint: 'e'.repeat(64) }
    const outcomes = await Promise.all([
      outcomeOf(good('a'), reservation({ key: 'a' })),
      outcomeOf(good('a2'), reservation({ key: 'a' })),
      outcomeOf(signup('b', { keyId: 'nothing' }), reservation({ key: 'b' })),
      outcomeOf(signup('c', { keyId: 'globex-live' })),
      outcomeOf(signup('c', { keyId: 'acme-live', partner: 'missing' })),
      outcomeOf(good('before')),
      outcomeOf(good('before'), reservation({ key: 'd' })),
      outcomeOf(good('e'), reservation({ key: 'before' })),
      outcomeOf(good('f'), reservation({ key: 'before', ...other })),
      outcomeOf({ ...good('g'), createdAt: reservation().expiresAt }, reservation({ key: 'old', ...other })),
      outcomeOf(good('h')),
      outcomeOf(
        signup('i', { keyId: 'globex-test', partner: 'globex', environment: 'test' }),
        reservation({ key: 'a' }),
      ),
      outcomeOf({ ...fullSignup, keyId: 'acme-live' }, reservation({ key: '{"\\' })),
    ])
    const [first, second, ...rest] = outcomes
    t.strictSame([first, second].sort(), ['created', 'replayed'], 'one idempotency key')
    t.strictSame(rest.slice(0, 5), Array(5).fill('refused'), 'keys of nobody or others, and ids in use')
    t.strictSame(rest.slice(5), ['replayed', 'mismatch', ...Array(4).fill('created')])
    const names = (await list(store)).map(({ id }) => id.slice(4).replace(/^0+/, ''))
    t.strictSame(names.map((name) => name.charAt(0)).sort(), ['a', 'b', 'f', 'g', 'h', 'i', 'o'])
    for (const id of ['b', 'd']) t.equal(await outcomeOf(good(`${id}2`), reservation({ key: id })), 'created')
    const { signupsByDay } = await store.summarise('acme', utcDay(T0), utcDay(T0))
    t.strictSame(signupsByDay.map(({ signups }) => signups), [7], 'each is counted once, and tests are not')
  })

  await check('two bodies with one idempotency key at one moment are one signup', async (t, store) => {
    await prepare(store)
    const sent = Array.from({ length: 60 }, (_, index) => ({
      signup: signup(`${index}`),
      reservation: reservation({ key: `k${index % 20}`, fingerprint: String(index % 3).repeat(64) }),
    }))
    const outcomes = await Promise.all(
      sent.map(async ({ signup, reservation }) => await store.createSignup(signup, reservation)),
    )
    const created = sent.filter((_, index) => outcomes[index]!.outcome === 'created')
    t.strictSame([created.length, new Set(created.map(({ reservation }) => reservation.key)).size], [20, 20])
    const wanted = sent.map(({ signup, reservation }) => {
      const first = created.find((one) => one.reservation.key === reservation.key)!
      if (first.signup === signup) return { outcome: 'created' }
      return first.reservation.fingerprint === reservation.fingerprint
        ? { outcome: 'replayed', id: first.signup.id, createdAt: T0 }
        : { outcome: 'mismatch' }
    })
    t.strictSame(outcomes, wanted)
  })

  await check('a reservation ends at the instant at which it expires', async (t, store) => {
    await prepare(store)
    const first = signup('1')
    const second = signup('2', { createdAt: T0 + 100 })
    await store.createSignup(first, reservation({ expiresAt: T0 + 100 }))
    t.strictSame(
      await store.createSignup(signup('late', { createdAt: T0 + 99 }), reservation({ expiresAt: T0 + 200 })),
      { outcome: 'replayed', id: first.id, createdAt: T0 },
      'a reservation holds in its last millisecond, and a replay does not extend it',
    )
    const renewed = reservation({ expiresAt: T0 + 200, fingerprint: 'e'.repeat(64) })
    t.strictSame(
      await store.createSignup(second, renewed),
      { outcome: 'created' },
      'an expired reservation accepts any body',
    )
    t.strictSame(await store.createSignup(signup('3', { createdAt: T0 + 199 }), renewed), {
      outcome: 'replayed',
      id: second.id,
      createdAt: T0 + 100,
    })
    t.strictSame(
      await store.createSignup(signup('4', { createdAt: T0 + 199 }), reservation()),
      { outcome: 'mismatch' },
      'the earlier reservation has no effect',
    )
    t.strictSame(await list(store), [second, first])
  })

  await check('expired reservations are removed, and others are kept', async (t, store) => {
    await prepare(store)
    const keyOf = (index: number) =>
      reservation({ key: `k${index}`, expiresAt: T0 + (index % 2 ? 10 : 1000) })
    for (let index = 0; index < 12; index++) await store.createSignup(signup(`a${index}`), keyOf(index))
    for (let index = 0; index < 12; index++) {
      await store.createSignup(signup(`b${index}`, { createdAt: T0 + 10 }), undefined)
    }
    for (let index = 0; index < 12; index++) {
      const { outcome } = await store.createSignup(signup(`c${index}`, { createdAt: T0 + 10 }), keyOf(index))
      t.equal(outcome, index % 2 ? 'created' : 'replayed', `k${index}`)
    }
  })

  await check('reservations of partners, and of live and test keys, are separate', async (t, store) => {
    await createKeys(store, 'acme', 'globex')
    for (const partner of ['acme', 'globex']) {
      for (const environment of ['live', 'test'] as const) {
        const keyId = `${partner}-${environment}`
        const sent = signup(keyId, { partner, environment, keyId })
        t.strictSame(await store.createSignup(sent, reservation()), { outcome: 'created' }, keyId)
        t.strictSame(await store.createSignup({ ...sent, id: 'sgn_x' }, reservation()), {
          outcome: 'replayed',
          id: sent.id,
          createdAt: T0,
        })
      }
    }
    t.equal((await list(store)).length, 4)
  })

  await check('a reservation alone holds its key, and the signup can be stored later', async (t, store) => {
    await prepare(store)
    const first = signup('first')
    t.strictSame(await store.reserveSignup(first, reservation()), { outcome: 'created' })
    const replay = { outcome: 'replayed', id: first.id, createdAt: T0 } as const
    const reserved: [Partial<Signup>, string, boolean][] = [
      [{}, 'order 66', true],
      [{}, 'other', false],
      [{ environment: 'test' }, 'order 66', false],
      [{ createdAt: reservation().expiresAt }, 'order 66', false],
    ]
    for (const [sent, once, expected] of reserved) {
      t.equal(
        await store.isReserved(signup('0', sent), reservation({ key: once })),
        expected,
        JSON.stringify(sent) + once,
      )
    }
    t.strictSame(await store.reserveSignup(signup('2', { createdAt: T0 + 5 }), reservation()), replay)
    t.strictSame(await store.createSignup(signup('3', { createdAt: T0 + 5 }), reservation()), replay)
    const other = reservation({ fingerprint: 'e'.repeat(64) })
    t.strictSame(await store.reserveSignup(signup('other'), other), { outcome: 'mismatch' })
    t.strictSame([await list(store), await store.findSignup(first.id)], [[], undefined])
    const { signupsByDay } = await store.summarise('acme', utcDay(T0), utcDay(T0))
    t.strictSame(signupsByDay, [], 'a reservation counts nothing')

    t.strictSame(await store.createSignup(first, undefined), { outcome: 'created' })
    t.ok(await fails(() => store.createSignup(first, undefined)), 'it is stored once')
    t.strictSame(await store.reserveSignup(signup('4', { createdAt: T0 + 5 }), reservation()), replay)
    t.strictSame(await list(store), [first])
    const later = signup('5', { createdAt: reservation().expiresAt })
    t.strictSame(
      await store.reserveSignup(later, reservation()),
      { outcome: 'created' },
      'a reservation expires',
    )

    for (const wrong of [{ keyId: 'nothing' }, { partner: 'missing' }]) {
      t.ok(
        await fails(() => store.reserveSignup(signup('x', wrong), reservation({ key: 'x' }))),
        JSON.stringify(wrong),
      )
    }
    t.strictSame(await store.reserveSignup(signup('x'), reservation({ key: 'x' })), { outcome: 'created' })
  })

  await check('200 concurrent reservations of one idempotency key get one id', async (t, store) => {
    await prepare(store)
    const outcomes = await Promise.all(
      Array.from(
        { length: 200 },
        async (_, index) => await store.reserveSignup(signup(`${index}`), reservation()),
      ),
    )
    const [created, ...more] = outcomes.filter(({ outcome }) => outcome === 'created')
    t.strictSame([created, more], [{ outcome: 'created' }, []])
    const ids = outcomes.flatMap((found) => found.outcome === 'replayed' ? [found.id] : [])
    t.strictSame([ids.length, new Set(ids).size], [199, 1])
  })

  await check('the keys of a partner share reservations', async (t, store) => {
    await prepare(store)
    await apply(store, { type: 'key.issued', key: key({ id: 'second' }) })
    await store.createSignup(signup('1'), reservation())
    t.equal((await store.createSignup(signup('2', { keyId: 'second' }), reservation())).outcome, 'replayed')
  })

  await check(
    'signups are deleted with their deliveries and reservations, and stay counted',
    async (t, store) => {
      await createKeys(store, 'acme', 'globex')
      const hooks = ['active', 'disabled', 'removed'].map((name) => `whk_${name.padStart(20, '0')}`)
      const change = async (id: string, type: WebhookChangeType, more: Partial<Webhook> | undefined) =>
        await store.webhooks.changeWebhook(id, type, stamp, () =>
          more && {
            id,
            url: 'https://hooks.example/',
            events: ['signup.created'],
            partner: undefined,
            state: 'active',
            createdAt: T0,
            secrets: [{ sealed: 'v1', expiresAt: undefined }],
            failingSince: undefined,
            ...more,
          })
      for (const id of hooks) await change(id, 'webhook.created', {})
      const send = async (id: string, more: Partial<Signup> = {}) => {
        const { partner = 'acme', environment = 'live' } = more
        const sent = signup(id, { keyId: `${partner}-${environment}`, plan: 'pro', country: 'DE', ...more })
        t.equal(
          (await store.createSignup(sent, reservation({ key: id, expiresAt: sent.createdAt + DAY }))).outcome,
          'created',
          id,
        )
        return sent.id
      }
      const kept = await send('kept')
      const deleted = [
        await send('1'),
        await send('2', { environment: 'test' }),
        await send('3', { partner: 'globex', createdAt: T0 + 5 }),
      ]
      const alone = await send('4')
      const [first] = await store.webhooks.leaseDeliveries(hooks[0]!, 1, 60_000)
      const result = { state: 'delivered', retryMs: 0, lastStatus: 204, lastError: undefined } as const
      await store.webhooks.settleDeliveries([{ webhook: hooks[0]!, id: first!.id, ...result }])
      await change(hooks[1]!, 'webhook.disabled', { state: 'disabled' })
      await change(hooks[2]!, 'webhook.removed', undefined)
      const counts = async () => await store.summarisePartners(utcDay(T0), utcDay(T0), undefined, 10)
      const before = await counts()
      const revision = await store.revision()
      const head = await store.auditHead()

      const context = { actor: 'erin', at: T0 + DAY }
      t.equal(await store.deleteSignups([...deleted, deleted[0]!, 'sgn_unknown'], context), 3)
      t.equal(await store.deleteSignups([alone], context), 1)
      t.equal(await store.deleteSignups([alone, 'sgn_unknown', "'"], context), 0)
      t.equal(await store.deleteSignups([], context), 0)
      const remaining = [(await list(store)).map(({ id }) => id), await store.findSignup(deleted[0]!)]
      t.strictSame(remaining, [[kept], undefined])
      const activity = await store.listActivity('acme', {
        types: ['signup.created'],
        after: undefined,
        limit: 9,
      }, T0 + DAY)
      t.equal(activity.length, 1)
      for (const hook of hooks) {
        const deliveries = await store.webhooks.listDeliveries(hook, undefined, undefined, 10)
        t.strictSame(deliveries.map(({ id }) => id.slice(4)), [kept.slice(4)], hook)
      }
      t.strictSame([await counts(), await store.revision()], [before, revision])
      const entries = await store.listAudit(head.sequence, 10)
      t.strictSame(
        entries.map((
          { type, actor, at, partner, keyId, subject, before, after },
        ) => [type, actor, at, partner, keyId, subject, before, after]),
        [
          [undefined, { signups: 3, deliveries: 9, claims: 3 }],
          ['acme', { signups: 1, deliveries: 3, claims: 1 }],
        ].map(([partner, counts]) => [
          'signups.deleted',
          'erin',
          T0 + DAY,
          partner,
          undefined,
          undefined,
          JSON.stringify(counts),
          undefined,
        ]),
      )
      const { brokenAt, differences } = await verifyAuditLog(store)
      t.strictSame([brokenAt, differences], [undefined, []])
      await store.eraseRemains(false)
      await store.eraseRemains(true)

      const again = signup('again', { keyId: 'acme-live' })
      t.strictSame(
        await store.createSignup(again, reservation({ key: '1' })),
        { outcome: 'created' },
        'a new signup',
      )
      t.equal(
        (await store.createSignup(signup('b', { keyId: 'acme-live' }), reservation({ key: 'kept' }))).outcome,
        'replayed',
      )
    },
  )

  await check('lists are newest first, then by id, in pages of any size', async (t, store) => {
    await createKeys(store, 'acme', 'globex', 'idle')
    const sent: Signup[] = []
    for (let index = 0; index < 24; index++) {
      const partner = index % 3 === 0 ? 'globex' : 'acme'
      const environment = index % 4 === 0 ? 'test' : 'live'
      const createdAt = T0 + [0, 2, 1, 2, -1][index % 5]!
      const id = `${(index * 7) % 24}`
      sent.push(signup(id, { partner, environment, keyId: `${partner}-${environment}`, createdAt }))
    }
    for (const one of sent) await store.createSignup(one, undefined)
    const sorted = sent.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1))
    t.strictSame(await store.findSignup(sent[1]!.id), sent[1])
    t.equal(await store.findSignup('missing'), undefined)
    for (const partner of [undefined, 'acme', 'globex', 'idle', 'missing']) {
      const wanted = sorted.filter((one) => partner === undefined || one.partner === partner)
      t.strictSame(await list(store, partner), wanted, `${partner}`)
      for (const limit of [1, 2, 5, 24]) {
        const pages = readRows<Signup>((after, size) => store.listSignups(partner, after, size), limit)
        t.strictSame(await gatherFew(pages), wanted, `${partner}, ${limit} a page`)
      }
    }
  })
}

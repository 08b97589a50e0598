/** Random histories of one chain by an operator and its partner: no key holds what no chain of operators' grants gave it. */
import fc from 'fast-check'
import { test } from 'tap'
import { createKeyAdministration, type KeyAdministration } from '../../core/admin/keys.ts'
import { createSelfService } from '../../core/admin/self-service.ts'
import { createPartnerAdministration, type PartnerAdministration } from '../../core/admin/partners.ts'
import { AdminError } from '../../core/admin/error.ts'
import { parseCidr, parseIpAddress, rangeContains } from '../../core/lib/ip-address.ts'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import type { Key, KeyFacts, LimitOverrides } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const runs = Number(process.env['HISTORIES'] ?? 300)
const hour = 3_600_000
const scopes = ['read:profiles', 'read:banner', 'read:countries', 'read:plans']
const ranges = [[], ['192.0.2.0/24'], ['192.0.2.0/25', '2001:db8::/32'], [
  '192.0.2.128/25',
  '198.51.100.0/24',
], ['::/0']]
const addresses = ['192.0.2.1', '192.0.2.200', '198.51.100.9', '2001:db8::1', '203.0.113.5'].map((text) =>
  parseIpAddress(text)!
)

/** What a key may do by the model, which knows only what actors did and not how successors are made. */
interface Rights {
  readonly scopes: ReadonlySet<string>
  /** Which of the addresses may use it. */
  readonly from: readonly boolean[]
  readonly end: number
  readonly quota: number
}

const rightsOf = (
  { scopes, allow, expiresAt, limits }: Pick<Key, 'scopes' | 'allow' | 'expiresAt' | 'limits'>,
): Rights => ({
  scopes: new Set(scopes),
  from: addresses.map((address) =>
    allow.length === 0 || allow.some((range) => rangeContains(parseCidr(range), address))
  ),
  end: expiresAt ?? Infinity,
  quota: quotaOf(limits),
})

function quotaOf({ key: { quota } = DEFAULT_LIMITS.key }: LimitOverrides): number {
  return quota === 0 ? Infinity : quota
}

function common(all: readonly Rights[]): Rights {
  return {
    scopes: new Set(scopes.filter((scope) => all.every((rights) => rights.scopes.has(scope)))),
    from: addresses.map((_, index) => all.every((rights) => rights.from[index])),
    end: Math.min(...all.map(({ end }) => end)),
    quota: Math.min(...all.map(({ quota }) => quota)),
  }
}

function exceeds(held: Rights, granted: Rights): boolean {
  return [...held.scopes].some((scope) => !granted.scopes.has(scope)) ||
    held.from.some((isAllowed, index) => isAllowed && !granted.from[index]) ||
    held.end > granted.end || held.quota > granted.quota
}

const step = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({ act: fc.constant('rotate'), overlap: fc.constantFrom(0, 1, 24, 168) }),
  },
  ...['use', 'wait', 'disable', 'enable', 'suspend', 'resume', 'forbid', 'permit', 'rotate by operator']
    .map((act) => ({ weight: 1, arbitrary: fc.record({ act: fc.constant(act) }) })),
  { weight: 2, arbitrary: fc.record({ act: fc.constant('cut'), scope: fc.constantFrom(...scopes) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('grant'), scope: fc.constantFrom(...scopes) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('allow'), allow: fc.constantFrom(...ranges) }) },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant('expire'), hours: fc.option(fc.integer({ min: 1, max: 400 })) }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('limit'), quota: fc.constantFrom(0, 5, 600, 900) }) },
)
/** @param pick The key among those of the chain, the newest first. */
const history = fc.array(fc.tuple(step, fc.constantFrom(0, 0, 0, 1, 1, 2, 3)), {
  minLength: 4,
  maxLength: 24,
})

type Step = {
  act: string
  overlap?: number
  scope?: string
  allow?: string[]
  hours?: number | null
  quota?: number
}

test('no key of a chain holds what operators did not give it', async (t) => {
  let now = Date.UTC(2026, 0, 1)
  const operator = { actor: 'ops', clock: () => now }
  let store: Store
  let keys: KeyAdministration
  let partners: PartnerAdministration
  let serial = 0
  const made = { rotations: 0, refusals: 0, chainEnds: 0 }

  async function run(steps: readonly (readonly [Step, number])[]): Promise<void> {
    // A store for some histories: one in memory grows with its audit log.
    if (serial % 500 === 0) {
      store = await openMemoryStore()
      keys = createKeyAdministration(store, operator)
      partners = createPartnerAdministration(store, operator)
    }
    const partner = `partner-${serial++}`
    const modules = ['profiles', 'banner', 'countries', 'pricing']
    await partners.create({ slug: partner, name: partner, modules, selfService: ['rotate'] })
    const { key } = await keys.issue({
      partner,
      name: 'Shop',
      environment: 'live',
      scopes: scopes.slice(0, 3),
    })
    const granted = new Map([[key.id, rightsOf(key)]])
    for (const [step, pick] of steps) {
      const id = [...granted.keys()].at(-1 - pick % granted.size)!
      await take(step, id, partner, granted).catch((error) => {
        if (!(error instanceof AdminError)) throw error
        made.refusals++
      })
      for await (const each of keys.list({ partner })) {
        const known = granted.get(each.id)
        if (known === undefined || exceeds(rightsOf(each), known)) {
          throw new Error(`Key ${each.id} holds too much.`)
        }
      }
    }
  }

  async function take(step: Step, id: string, partner: string, granted: Map<string, Rights>): Promise<void> {
    const { act, overlap = 0, scope = '', allow = [], hours, quota = 0 } = step
    const before = granted.get(id)!
    const change = (key: Key, part: (given: Rights) => Partial<Rights>) => {
      granted.set(id, { ...before, ...part(rightsOf(key)) })
    }
    if (act === 'rotate') return await rotate(id, overlap, partner, granted)
    if (act === 'use') await store.recordKeyUses(new Map([[id, now]]))
    if (act === 'wait') now += 5 * hour
    if (act === 'suspend') await partners.suspend(partner)
    if (act === 'resume') await partners.resume(partner)
    if (act === 'forbid') await partners.update(partner, { selfService: [] })
    if (act === 'permit') await partners.update(partner, { selfService: ['rotate'] })
    if (act === 'disable' || act === 'enable') await keys[act](id)
    if (act === 'rotate by operator') granted.set((await keys.rotate(id)).key.id, before)
    if (act === 'cut') change(await keys.remove(id, [scope]), ({ scopes }) => ({ scopes }))
    if (act === 'grant') change(await keys.grant(id, [scope]), ({ scopes }) => ({ scopes }))
    if (act === 'allow') change(await keys.update(id, { allow }), ({ from }) => ({ from }))
    if (act === 'expire') {
      change(
        await keys.update(id, { expiresAt: hours == null ? null : now + hours * hour }),
        ({ end }) => ({ end }),
      )
    }
    if (act === 'limit') {
      const set = { key: { quota, windowSeconds: 60 } }
      change(await keys.update(id, { limits: { set } }), ({ quota }) => ({ quota }))
    }
  }

  /** As the service does it for a request of the key. */
  async function rotate(
    id: string,
    overlap: number,
    partner: string,
    granted: Map<string, Rights>,
  ): Promise<void> {
    const { successorId: replaces } = await keys.show(id)
    const recheck = ({ partner, key }: KeyFacts) => {
      if (partner.state !== 'active' || !partner.selfService.includes('rotate') || key.state === 'disabled') {
        throw new AdminError('refused', 'The request is refused.')
      }
    }
    const self = createSelfService(store, { actor: `key:${id}`, clock: () => now }, {
      recheck,
      isUsed: () => false,
    })
    const before = replaces === undefined ? undefined : await keys.show(replaces)
    const serviceLimits = DEFAULT_LIMITS
    const { key } = await self.rotate(id, { overlapMs: overlap * hour, replaces, serviceLimits })
    made.rotations++
    const replaced = replaces === undefined ? [id] : [id, replaces]
    granted.set(key.id, common(replaced.map((each) => granted.get(each)!)))
    if (before?.lastUsedAt !== undefined) throw new Error('A successor that was used was replaced.')
    if (replaces !== undefined) await checkFormer(store, id, replaces)
    const chain = await store.listChain(key.id, 0, now)
    const own = chain.filter(({ predecessorId }) => predecessorId !== undefined)
    if (own.length > 3 && !await hasOperatorRotation(store, partner)) {
      throw new Error('More than three keys are in force.')
    }
    if (chain.length === 3) made.chainEnds++
  }

  await fc.assert(fc.asyncProperty(history, (steps) => run(steps as never)), { numRuns: runs })
  t.ok(made.rotations > runs && made.refusals > runs && made.chainEnds > 0, JSON.stringify({ runs, ...made }))
})

/** The former successor ends no later than the key itself. */
async function checkFormer(store: Store, id: string, formerId: string): Promise<void> {
  const key = (await store.findKey(id))!.key
  const former = (await store.findKey(formerId))!.key
  const isOver = former.state === 'revoked' || former.state === 'retired'
  if (!isOver && former.retiresAt! > key.retiresAt!) throw new Error(`Key ${formerId} outlives ${id}.`)
}

async function hasOperatorRotation(store: Store, partner: string): Promise<boolean> {
  const entries = await store.listAudit(await store.auditTail(200, partner), 200, partner)
  return entries.some(({ type, actor }) => type === 'key.rotated' && actor === 'ops')
}

import { createClock } from '../clock.ts'
import type { LimitOverrides, Partner } from '../model.ts'
import type { Store } from '../ports.ts'
import { readPages } from '../read-pages.ts'
import type { Change } from './changes.ts'
import { changeFacts, createStamp, type Operator } from './change-facts.ts'
import { findPartner } from './find.ts'
import { Refusal } from './refusal.ts'
import {
  changedLimits,
  type LimitChange,
  requireLimits,
  requireModules,
  requireName,
  requireNotRemoved,
  requireSlug,
  sameLimits,
} from './rules.ts'

/** A partner to be created. */
export interface NewPartner {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first; never taken before, not even by a partner since removed. */
  readonly slug: string
  /** 1–200 code points without control characters. */
  readonly name: string
  /** Names of the modules that are active from the start. */
  readonly modules: readonly string[]
  /** Limits of its own; none by default. */
  readonly limits?: LimitOverrides
}

/** What is to be changed of a partner; what is left out stays. */
export interface PartnerUpdate {
  /** 1–200 code points without control characters. */
  readonly name?: string | undefined
  /** Limits that it gets and loses. */
  readonly limits?: LimitChange | undefined
}

/**
 * What an operator may do about partners. Everything that changes a partner gives it back as it is then;
 * to ask for what is already so changes nothing. A removed partner can be read, but no longer changed.
 */
export interface PartnerAdministration {
  /**
   * Makes a partner.
   * @throws {Refusal} `invalid_slug`, `invalid_name`, `unknown_module`, `invalid_limit`, `partner_exists`
   */
  create(partner: NewPartner): Promise<Partner>
  /** All partners, removed ones included, by slug, read from the store in pages. */
  list(): AsyncIterable<Partner>
  /** The partner, removed or not. @throws {Refusal} `partner_not_found` */
  show(slug: string): Promise<Partner>
  /**
   * Changes its name and limits.
   * @throws {Refusal} `invalid_name`, `invalid_limit`, `partner_not_found`, `partner_removed`
   */
  update(slug: string, update: PartnerUpdate): Promise<Partner>
  /** Refuses all of the partner's requests until it is resumed. @throws {Refusal} `partner_not_found`, `partner_removed` */
  suspend(slug: string): Promise<Partner>
  /** Undoes `suspend`. @throws {Refusal} `partner_not_found`, `partner_removed` */
  resume(slug: string): Promise<Partner>
  /** Ends it for good: its keys are revoked, its records stay and its slug stays taken. @throws {Refusal} `partner_not_found` */
  remove(slug: string): Promise<Partner>
  /** Puts the modules' scopes in force, all or none. @throws {Refusal} `unknown_module`, `partner_not_found`, `partner_removed` */
  activate(slug: string, modules: readonly string[]): Promise<Partner>
  /**
   * Takes the modules' scopes out of force for all of the partner's keys, which go on holding them.
   * @throws {Refusal} `unknown_module`, `partner_not_found`, `partner_removed`
   */
  deactivate(slug: string, modules: readonly string[]): Promise<Partner>
}

/** Partners of this store. @throws {RangeError} when the operator's name is none. */
export function createPartnerAdministration(
  store: Pick<Store, 'revision' | 'clock' | 'listPartners' | 'findPartner' | 'apply'>,
  operator: Operator,
): PartnerAdministration {
  const { clock = createClock(() => store.clock?.()).now } = operator
  const stamp = createStamp({ ...operator, clock })
  const show = (slug: string) => findPartner(store, slug)

  async function change(slug: string, decide: (partner: Partner) => readonly Change[]): Promise<Partner> {
    await changeFacts(store, stamp, async () => {
      const partner = await show(slug)
      requireNotRemoved(partner)
      return decide(partner)
    })
    return show(slug)
  }

  return {
    async create({ slug, name, modules: names, limits = {} }) {
      requireSlug(slug)
      requireName(name)
      requireLimits(limits)
      const modules = requireModules(names)
      const partner: Partner = { slug, name, state: 'active', modules, limits, createdAt: clock() }
      await changeFacts(store, stamp, async () => {
        if (await store.findPartner(slug) === undefined) return [{ type: 'partner.created', partner }]
        throw new Refusal('partner_exists', `The slug ${slug} is taken; a removed partner keeps its slug.`)
      })
      return partner
    },

    list: () => readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit)),

    show,

    async update(slug, { name: newName, limits: wanted = {} }) {
      if (newName !== undefined) requireName(newName)
      return await change(slug, (partner) => {
        const name = newName ?? partner.name
        const limits = changedLimits(partner.limits, wanted)
        const isSame = name === partner.name && sameLimits(limits, partner.limits)
        return isSame ? [] : [{ type: 'partner.updated', slug, name, limits }]
      })
    },

    async remove(slug) {
      await changeFacts(
        store,
        stamp,
        async () => (await show(slug)).state === 'removed' ? [] : [{ type: 'partner.removed', slug }],
      )
      return show(slug)
    },

    suspend(slug) {
      return change(slug, ({ state }) => state === 'suspended' ? [] : [{ type: 'partner.suspended', slug }])
    },

    resume(slug) {
      return change(slug, ({ state }) => state === 'active' ? [] : [{ type: 'partner.resumed', slug }])
    },

    async activate(slug, names) {
      const modules = requireModules(names)
      return await change(slug, (partner) =>
        modules
          .filter((module) => !partner.modules.includes(module))
          .map((module) => ({ type: 'module.activated', slug, module })))
    },

    async deactivate(slug, names) {
      const modules = requireModules(names)
      return await change(slug, (partner) =>
        modules
          .filter((module) => partner.modules.includes(module))
          .map((module) => ({ type: 'module.deactivated', slug, module })))
    },
  }
}

import { readPages } from '../lib/read-pages.ts'
import { createClock } from '../lib/time.ts'
import type { LimitOverrides, Partner } from '../model.ts'
import type { Change } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { applyWithRetry, createAuditContext, findPartner, type Operator } from './apply.ts'
import {
  AdminError,
  applyLimitChange,
  equalLimits,
  type LimitChange,
  requireLimits,
  requireModules,
  requireName,
  requireNotRemoved,
  requireSlug,
} from './validate.ts'

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
   * @throws {AdminError} `invalid_slug`, `invalid_name`, `unknown_module`, `invalid_limit`, `partner_exists`
   */
  create(partner: NewPartner): Promise<Partner>
  /** All partners, removed ones included, by slug, read from the store in pages. */
  list(): AsyncIterable<Partner>
  /** The partner, removed or not. @throws {AdminError} `partner_not_found` */
  show(slug: string): Promise<Partner>
  /**
   * Changes its name and limits.
   * @throws {AdminError} `invalid_name`, `invalid_limit`, `partner_not_found`, `partner_removed`
   */
  update(slug: string, update: PartnerUpdate): Promise<Partner>
  /** Refuses all of the partner's requests until it is resumed. @throws {AdminError} `partner_not_found`, `partner_removed` */
  suspend(slug: string): Promise<Partner>
  /** Undoes `suspend`. @throws {AdminError} `partner_not_found`, `partner_removed` */
  resume(slug: string): Promise<Partner>
  /** Ends it for good: its keys are revoked, its records stay and its slug stays taken. @throws {AdminError} `partner_not_found` */
  remove(slug: string): Promise<Partner>
  /** Puts the modules' scopes in force, all or none. @throws {AdminError} `unknown_module`, `partner_not_found`, `partner_removed` */
  activate(slug: string, modules: readonly string[]): Promise<Partner>
  /**
   * Takes the modules' scopes out of force for all of the partner's keys, which go on holding them.
   * @throws {AdminError} `unknown_module`, `partner_not_found`, `partner_removed`
   */
  deactivate(slug: string, modules: readonly string[]): Promise<Partner>
}

/** Partners of this store. @throws {RangeError} when the operator's name is none. */
export function createPartnerAdministration(
  store: Pick<Store, 'revision' | 'clock' | 'listPartners' | 'findPartner' | 'apply'>,
  operator: Operator,
): PartnerAdministration {
  const { clock = createClock(() => store.clock?.()).now } = operator
  const auditContext = createAuditContext({ ...operator, clock })
  const show = (slug: string) => findPartner(store, slug)

  async function change(
    slug: string,
    buildChanges: (partner: Partner) => readonly Change[],
  ): Promise<Partner> {
    await applyWithRetry(store, auditContext, async () => {
      const partner = await show(slug)
      requireNotRemoved(partner)
      return buildChanges(partner)
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
      await applyWithRetry(store, auditContext, async () => {
        if (await store.findPartner(slug) === undefined) return [{ type: 'partner.created', partner }]
        throw new AdminError('partner_exists', `The slug ${slug} is taken; a removed partner keeps its slug.`)
      })
      return partner
    },

    list: () => readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit)),

    show,

    async update(slug, { name: newName, limits: wanted = {} }) {
      if (newName !== undefined) requireName(newName)
      return await change(slug, (partner) => {
        const name = newName ?? partner.name
        const limits = applyLimitChange(partner.limits, wanted)
        const isSame = name === partner.name && equalLimits(limits, partner.limits)
        return isSame ? [] : [{ type: 'partner.updated', slug, name, limits }]
      })
    },

    async remove(slug) {
      await applyWithRetry(
        store,
        auditContext,
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

import { PARTNER_POLICY_NAMES } from '../limits/policies.ts'
import {
  type LimitOverrides,
  type Modules,
  NO_PARTNER_DETAILS,
  type Partner,
  type PartnerDetails,
} from '../model.ts'
import { assertKind, assertOptions, type OptionKinds } from '../lib/options.ts'
import type { Change } from '../ports/changes.ts'
import { type AdministeredStore, readRows, type Store } from '../ports/store.ts'
import {
  claimRevocations,
  createAdministrator,
  findPartner,
  listOpenClaims,
  type Operator,
  toDisabledWebhook,
} from './apply.ts'
import { AdminError } from './error.ts'
import {
  applyLimitChange,
  changeDetails,
  type DetailsChange,
  equalLimits,
  hasAll,
  type LimitChange,
  requireLimits,
  requireName,
  requireNames,
  requireNotRemoved,
  requireSlug,
} from './validate.ts'

/** A partner to be created, by default without details. */
export interface NewPartner extends DetailsChange<PartnerDetails> {
  /** 1–80 of `a-z 0-9 -`, a letter or digit first. The slug of a removed partner cannot be used again. */
  readonly slug: string
  /** 1–200 code points without control characters. */
  readonly name: string
  /** Names of the modules that are active from the start. */
  readonly modules: readonly string[]
  /** The partner's own limits; none by default. */
  readonly limits?: LimitOverrides | undefined
}

/** The members of a partner that change; the others stay. `null` removes a detail. */
export interface PartnerUpdate extends DetailsChange<PartnerDetails> {
  /** 1–200 code points without control characters. */
  readonly name?: string | undefined
  /** Limits that it gets and loses. */
  readonly limits?: LimitChange | undefined
}

const partnerUpdateKinds: OptionKinds<PartnerUpdate> = {
  name: 'a text',
  limits: 'an object',
  contact: 'a text or null',
  tags: 'a list of texts or null',
  externalId: 'a text or null',
  note: 'a text or null',
  selfService: 'a list of texts or null',
}

const newPartnerKinds: OptionKinds<NewPartner> = {
  ...partnerUpdateKinds,
  slug: 'a text',
  modules: 'a list of texts',
}

/**
 * Administration of partners. Each change returns the partner as it is afterwards; a change to the state that a
 * partner is already in does nothing. A removed partner can be read but not changed.
 *
 * Methods throw `TypeError` for an option that does not exist or a value of another kind, and `AdminError`: those
 * that take a slug with `partner_not_found`, changes to a removed partner with `partner_removed`, all changes with
 * `concurrent_change`, and each with its own codes.
 */
export interface PartnerAdministration {
  /**
   * Creates a partner.
   * @throws {AdminError} `invalid_slug`, `invalid_name`, `invalid_limit`, `invalid_details`, `unknown_module`,
   * `partner_exists`
   */
  create(partner: NewPartner): Promise<Partner>
  /** All partners, or those with a tag, removed ones included, by slug, read from the store in pages. */
  list(tag?: string): AsyncIterable<Partner>
  /** The partner, removed or not. */
  show(slug: string): Promise<Partner>
  /**
   * Changes its name, limits and details. Of a removed partner, the contact and the note can be removed.
   * @throws {AdminError} `invalid_name`, `invalid_limit`, `invalid_details`
   */
  update(slug: string, update: PartnerUpdate): Promise<Partner>
  /** Refuses all of the partner's requests until it is resumed. */
  suspend(slug: string): Promise<Partner>
  /** Undoes `suspend`. */
  resume(slug: string): Promise<Partner>
  /** Cannot be undone: ends its keys, claims and webhooks; its records are kept, and its slug cannot be used again. */
  remove(slug: string): Promise<Partner>
  /** Puts the modules' scopes in force, all or none. @throws {AdminError} `unknown_module` */
  activate(slug: string, modules: readonly string[]): Promise<Partner>
  /**
   * Takes the modules' scopes out of force for all of the partner's keys, which still hold them.
   * @throws {AdminError} `unknown_module`
   */
  deactivate(slug: string, modules: readonly string[]): Promise<Partner>
}

/** Administers the partners of a store. @throws {RangeError} for an invalid name of the operator. */
export function createPartnerAdministration(
  store: AdministeredStore & Pick<Store, 'webhooks'>,
  operator: Operator,
): PartnerAdministration {
  const { now, apply, isPreview } = createAdministrator(store, operator)
  const show = (slug: string) => findPartner(store, slug)

  async function change(
    slug: string,
    buildChanges: (partner: Partner, modules: Modules) => Change[],
    isErasure?: boolean,
  ): Promise<Partner> {
    await apply(async (modules) => {
      const partner = await show(slug)
      if (!isErasure) requireNotRemoved(partner)
      return buildChanges(partner, modules)
    })
    return show(slug)
  }

  async function setModules(slug: string, names: readonly string[], isActive: boolean): Promise<Partner> {
    const type = isActive ? 'module.activated' : 'module.deactivated'
    return await change(slug, (partner, known) => {
      const modules = requireNames('module', names, known.names)
      return modules.filter((module) => partner.modules.includes(module) !== isActive)
        .map((module) => ({ type, slug, module }))
    })
  }

  return {
    async create(created) {
      assertOptions('partners.create', created, newPartnerKinds)
      const { slug } = created
      const [change] = await apply(async (modules) => {
        const partner = newPartner(created, modules, now())
        if (await store.findPartner(slug) === undefined) return [{ type: 'partner.created', partner }]
        throw new AdminError('partner_exists', `The slug ${slug} is taken; a removed partner keeps its slug.`)
      })
      return (change as Extract<Change, { type: 'partner.created' }>).partner
    },

    list(tag) {
      if (tag !== undefined) assertKind('partners.list: the tag', tag, 'a text')
      return readRows<Partner>((after, limit) => store.listPartners(after?.slug, limit, tag))
    },

    show,

    async update(slug, update) {
      assertOptions('partners.update', update, partnerUpdateKinds)
      const { contact, note, ...others } = update
      // A removed partner need not keep personal data.
      const isErasure = !contact && !note && JSON.stringify(others) === '{}'
      if (update.name !== undefined) requireName(update.name)
      return await change(slug, (partner) => {
        const { name = partner.name } = update
        const limits = applyLimitChange(partner.limits, update.limits, PARTNER_POLICY_NAMES)
        const change = { slug, name, ...changeDetails(NO_PARTNER_DETAILS, update, partner) }
        const isSame = hasAll(partner, change) && equalLimits(limits, partner.limits)
        return isSame ? [] : [{ type: 'partner.updated', ...change, limits }]
      }, isErasure)
    },

    async remove(slug) {
      await apply(async () => {
        if ((await show(slug)).state === 'removed') return []
        const claims = await listOpenClaims(store, now(), slug)
        return [{ type: 'partner.removed', slug }, ...claimRevocations(claims)]
      })
      if (isPreview) return show(slug)
      // Their pending deliveries may have personal data.
      const context = { actor: operator.actor, at: now() }
      for (const { id, partner, state } of await store.webhooks.listWebhooks()) {
        if (partner !== slug || state !== 'active') continue
        await store.webhooks.changeWebhook(id, 'webhook.disabled', context, toDisabledWebhook)
      }
      return show(slug)
    },

    suspend: (slug) =>
      change(slug, ({ state }) => state === 'suspended' ? [] : [{ type: 'partner.suspended', slug }]),

    resume: (slug) =>
      change(slug, ({ state }) => state === 'active' ? [] : [{ type: 'partner.resumed', slug }]),

    activate: (slug, names) => setModules(slug, names, true),

    deactivate: (slug, names) => setModules(slug, names, false),
  }
}

function newPartner(
  { slug, name, modules: names, limits = {}, ...details }: NewPartner,
  modules: Modules,
  createdAt: number,
): Partner {
  requireSlug(slug)
  requireName(name)
  requireLimits(limits, PARTNER_POLICY_NAMES)
  return {
    slug,
    name,
    state: 'active',
    modules: requireNames('module', names, modules.names),
    limits,
    ...changeDetails(NO_PARTNER_DETAILS, details),
    createdAt,
  }
}

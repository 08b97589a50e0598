import { formatValue } from '../http/redact.ts'
import { assertKind, assertOptions } from '../lib/options.ts'
import {
  BUILT_IN_MODULES,
  type Key,
  MAX_OWN_MODULES,
  type Module,
  MODULE_PATTERN,
  type ModuleDefinition,
  type Modules,
  type Scope,
  SCOPE_PATTERN,
} from '../model.ts'
import { type AdministeredStore, readPartners, type Store } from '../ports/store.ts'
import { createAdministrator, listOpenClaims, type Operator, readModules } from './apply.ts'
import { issuedScopes } from './claim-request.ts'
import { AdminError, notFoundError } from './error.ts'
import { findNameProblem } from './validate.ts'

/**
 * Administration of the modules that open endpoints of one's own. Methods throw `AdminError` with `concurrent_change`,
 * and each with its own codes.
 */
export interface ModuleAdministration {
  /** All modules: the eight, then the others in the order of definition. */
  list(): Promise<readonly ModuleDefinition[]>
  /**
   * Adds a module; nothing changes when it exists with the same scope and feature.
   * @throws {AdminError} `invalid_module`, `module_exists`
   */
  define(module: ModuleDefinition): Promise<ModuleDefinition>
  /**
   * Removes a module, and its scope from keys that are not in force.
   * @throws {AdminError} `module_not_found`, `invalid_module` for one of the eight, `module_in_use` while a partner
   * has it active, or a key in force or an open claim has its scope
   */
  forget(name: string): Promise<void>
}

/** Administers the modules of a store. @throws {RangeError} for an invalid name of the operator. */
export function createModuleAdministration(
  store: AdministeredStore,
  operator: Operator,
): ModuleAdministration {
  const { now, apply } = createAdministrator(store, operator)
  return {
    list: async () => (await readModules(store)).list,

    async define(definition) {
      assertOptions('modules.define', definition, { name: 'a text', scope: 'a text', feature: 'a text' })
      const { name, scope, feature } = definition
      const module = { name, scope, feature }
      for (const [member, value] of Object.entries(module)) {
        assertKind(`modules.define: ${member}`, value, 'a text')
      }
      requireValid(module)
      await apply((modules) => {
        const known = modules.list.find((each) => each.name === name)
        if (known?.scope === scope && known.feature === feature) return []
        requireUnused(module, modules)
        return [{ type: 'module.defined', module }]
      })
      // A service that is created next has to know it, see `Store.knownModules`.
      await store.listModules()
      return module
    },

    async forget(name) {
      await apply(async (modules) => {
        const scope = modules.scopeOf(name)
        if (scope === undefined) {
          throw notFoundError('module_not_found', `There is no module ${formatValue(name)}.`, name)
        }
        if (BUILT_IN_MODULES.scopeOf(name) !== undefined) {
          throw new AdminError('invalid_module', `The module ${name} is built in and cannot be forgotten.`)
        }
        await requireInactive(store, name)
        await requireNotHeld(store, scope, now())
        return [{ type: 'module.forgotten', name }]
      })
    },
  }
}

function requireValid({ name, scope, feature }: ModuleDefinition): void {
  if (!MODULE_PATTERN.test(name)) {
    const rule = "A module's name must be 1–40 of a-z, 0-9 and -, a letter first"
    throw new AdminError('invalid_module', `${rule}, not ${formatValue(name)}.`)
  }
  if (BUILT_IN_MODULES.scopeOf(name) !== undefined) {
    throw new AdminError('invalid_module', `The module ${name} is built in. Choose another name.`)
  }
  if (!SCOPE_PATTERN.test(scope)) {
    const rule = 'A scope must be read, create, update or delete, a colon, and 1–40 of a-z, 0-9 and -'
    throw new AdminError('invalid_module', `${rule}, a letter first, not ${formatValue(scope)}.`)
  }
  const problem = findNameProblem(feature)
  if (problem !== undefined) {
    throw new AdminError('invalid_module', `The feature ${formatValue(feature)} ${problem}.`)
  }
}

function requireUnused({ name, scope }: ModuleDefinition, modules: Modules): void {
  const known = modules.scopeOf(name)
  if (known !== undefined) {
    const remedy = { purpose: 'To define it anew, first run', command: 'modules forget', args: [name] }
    throw new AdminError('module_exists', `The module ${name} exists, with the scope ${known}.`, remedy)
  }
  const holder = modules.moduleFor(scope)
  if (holder !== undefined) {
    throw new AdminError('module_exists', `The scope ${scope} belongs to the module ${holder}.`)
  }
  if (modules.list.length >= BUILT_IN_MODULES.list.length + MAX_OWN_MODULES) {
    const detail = `There are ${MAX_OWN_MODULES} modules besides the built-in ones, and no more are possible.`
    throw new AdminError('too_many_modules', detail)
  }
}

async function requireInactive(store: Pick<Store, 'listPartners'>, module: Module): Promise<void> {
  for await (const partner of readPartners(store)) {
    const { slug, state, modules } = partner
    if (state === 'removed' || !modules.includes(module)) continue
    const remedy = { purpose: 'To deactivate it', command: 'modules deactivate', args: [slug, module] }
    throw new AdminError('module_in_use', `The module ${module} is active for ${slug}.`, remedy)
  }
}

async function requireNotHeld(store: AdministeredStore, scope: Scope, now: number): Promise<void> {
  const inForce = { scope, states: ['active', 'retiring'], now } as const
  const [key]: readonly Key[] = await store.listKeys(inForce, undefined, 1)
  if (key !== undefined) {
    const remedy = { purpose: 'To remove it', command: 'scopes remove', args: [key.id, scope] }
    throw new AdminError('module_in_use', `Key ${key.id} of ${key.partner} holds ${scope}.`, remedy)
  }
  const claims = await listOpenClaims(store, now)
  const claim = claims.find((each) => issuedScopes(each)?.includes(scope))
  if (claim !== undefined) {
    const remedy = { purpose: 'To remove it', command: 'claims revoke', args: [claim.id] }
    throw new AdminError('module_in_use', `Claim ${claim.id} of ${claim.partner} holds ${scope}.`, remedy)
  }
}

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
import type { Administration } from '../ports/changes.ts'
import { readPartners, type Store } from '../ports/store.ts'
import { createAdministrator, type Operator, readModules, revokeClaims } from './apply.ts'
import { AdminError } from './error.ts'
import { validateName } from './validate.ts'

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
   * @throws {AdminError} `module_not_found`, `invalid_module` for one of the eight, `module_in_use` while a partner has it
   * active, or a key in force or an open claim has its scope
   */
  forget(name: string): Promise<void>
}

/** Administers the modules of a store. @throws {RangeError} for an invalid name of the operator. */
export function createModuleAdministration(
  store: Administration & Pick<Store, 'revision' | 'clock' | 'now' | 'listModules'>,
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
          throw new AdminError('module_not_found', `There is no module ${formatValue(name)}.`)
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
  const problem = !MODULE_PATTERN.test(name)
    ? `A module's name must be 1–40 of a-z, 0-9 and -, a letter first, not ${formatValue(name)}.`
    : BUILT_IN_MODULES.scopeOf(name) !== undefined
    ? `The module ${name} is built in. Choose another name.`
    : !SCOPE_PATTERN.test(scope)
    ? `A scope must be read, create, update or delete, a colon, and 1–40 of a-z, 0-9 and -, a letter first, ` +
      `not ${formatValue(scope)}.`
    : validateName(feature) && `The feature ${formatValue(feature)} ${validateName(feature)}.`
  if (problem) throw new AdminError('invalid_module', problem)
}

function requireUnused({ name, scope }: ModuleDefinition, modules: Modules): void {
  const purpose = 'To define it anew, first run'
  const known = modules.scopeOf(name)
  const holder = modules.moduleFor(scope)
  if (known !== undefined) {
    const detail = `The module ${name} exists, with the scope ${known}.`
    throw new AdminError('module_exists', detail, { purpose, command: 'modules forget', args: [name] })
  }
  if (holder !== undefined) {
    throw new AdminError('module_exists', `The scope ${scope} belongs to the module ${holder}.`)
  }
  if (modules.list.length < BUILT_IN_MODULES.list.length + MAX_OWN_MODULES) return
  const detail = `There are ${MAX_OWN_MODULES} modules besides the built-in ones, and no more are possible.`
  throw new AdminError('module_exists', detail)
}

async function requireInactive(store: Pick<Store, 'listPartners'>, module: Module): Promise<void> {
  for await (const partner of readPartners(store)) {
    const { slug, state, modules } = partner
    if (state === 'removed' || !modules.includes(module)) continue
    const remedy = { purpose: 'To deactivate it', command: 'modules deactivate', args: [slug, module] }
    throw new AdminError('module_in_use', `The module ${module} is active for ${slug}.`, remedy)
  }
}

async function requireNotHeld(store: Administration, scope: Scope, now: number): Promise<void> {
  const inForce = { scope, states: ['active', 'retiring'], now } as const
  const [key]: readonly Key[] = await store.listKeys(inForce, undefined, 1)
  const [link] = (await revokeClaims(store, now))
    .filter(({ claim }) => JSON.parse(claim.draft).scopes?.includes(scope))
  const holder = key ?? link?.claim
  if (holder === undefined) return
  const { id, partner } = holder
  const [command, args] = key ? ['scopes remove', [id, scope]] as const : ['claims revoke', [id]] as const
  const detail = `${key ? 'Key' : 'Claim'} ${id} of ${partner} holds ${scope}.`
  throw new AdminError('module_in_use', detail, { purpose: 'To remove it', command, args })
}

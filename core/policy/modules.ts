/**
 * Every integration module in the contract's order: the scope that it needs, and the feature that it switches on. A
 * scope of a key is in force only while an active module of its partner needs it.
 */
export const MODULES = {
  widget: { scope: 'read:partner-widget', feature: 'Combined widget' },
  profiles: { scope: 'read:profiles', feature: 'Recent profiles, directory and profile details' },
  banner: { scope: 'read:banner', feature: 'Banner embeds' },
  countries: { scope: 'read:countries', feature: 'Country filters' },
  industries: { scope: 'read:industries', feature: 'Industries and filters' },
  pricing: { scope: 'read:plans', feature: 'Pricing' },
  signup: { scope: 'create:partner-signups', feature: 'Signup forms' },
  reporting: { scope: 'read:partner-reports', feature: 'Partner reporting' },
} as const

/** The name of an integration module. */
export type Module = keyof typeof MODULES

/** One permission of a key. */
export type Scope = (typeof MODULES)[Module]['scope']

/** The modules by name, in the contract's order. */
export const MODULE_NAMES: readonly Module[] = Object.keys(MODULES) as Module[]

/** Every scope that a key can hold, in the order of the modules. */
export const SCOPES: readonly Scope[] = MODULE_NAMES.map((module) => MODULES[module].scope)

/** The module that needs a scope. */
export function moduleForScope(scope: Scope): Module {
  return MODULE_NAMES[SCOPES.indexOf(scope)]!
}

/** An integration feature that a partner switches on: the scope that it needs, and what it is for. */
export interface ModuleInfo {
  readonly scope: Scope
  readonly feature: string
}

/** The name of an integration module. */
export type Module =
  | 'widget'
  | 'profiles'
  | 'banner'
  | 'countries'
  | 'industries'
  | 'pricing'
  | 'signup'
  | 'reporting'

/** Every integration module. The scopes of a key count only while an active module of its partner needs them. */
export const MODULES: Readonly<Record<Module, ModuleInfo>> = {
  widget: { scope: 'read:partner-widget', feature: 'Combined widget' },
  profiles: { scope: 'read:profiles', feature: 'Recent profiles, directory and profile details' },
  banner: { scope: 'read:banner', feature: 'Banner embeds' },
  countries: { scope: 'read:countries', feature: 'Country filters' },
  industries: { scope: 'read:industries', feature: 'Industries and filters' },
  pricing: { scope: 'read:plans', feature: 'Pricing' },
  signup: { scope: 'create:partner-signups', feature: 'Signup forms' },
  reporting: { scope: 'read:partner-reports', feature: 'Partner reporting' },
}

/** The modules by name, in the contract's order. */
export const MODULE_NAMES: readonly Module[] = Object.keys(MODULES) as Module[]

const moduleByScope = Object.fromEntries(
  MODULE_NAMES.map((module) => [MODULES[module].scope, module]),
) as Record<Scope, Module>

/** The module whose activation puts `scope` in force. */
export function moduleForScope(scope: Scope): Module {
  return moduleByScope[scope]
}

/** Whether `text` names a module. */
export function isModule(text: string): text is Module {
  return Object.hasOwn(MODULES, text)
}

/** Every permission that a key can hold, in the specification's order. */
export const SCOPES = [
  'read:partner-widget',
  'read:profiles',
  'read:banner',
  'read:countries',
  'read:industries',
  'read:plans',
  'create:partner-signups',
  'read:partner-reports',
] as const

/** One permission of a key. */
export type Scope = (typeof SCOPES)[number]

/** Whether `text` names a scope. */
export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

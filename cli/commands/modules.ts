import { Argument, type Command } from 'commander'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { Partner } from '../../core/model.ts'
import { MODULE_NAMES, MODULES } from '../../core/policy/modules.ts'
import { action, type Invocation, setChangeAction, type WaitOptions } from '../command.ts'
import { partnerJson } from '../output/json.ts'
import { printResult } from '../output/print.ts'
import { formatTable } from '../output/text.ts'
import { withStore } from '../store.ts'

/** `modules list`, `activate` and `deactivate`. */
export function define(modules: Command): void {
  modules.command('list')
    .description('List modules with their scopes, and whether they are active for a partner')
    .argument('[partner]', "The partner's slug")
    .addHelpText(
      'after',
      `
Examples:
  $ partner-api modules list
  $ partner-api modules list acme`,
    )
    .action(action(list))

  addChangeCommand(
    modules,
    'activate',
    "Activate modules, which puts their scopes in force for the partner's keys",
    'Existing keys do not get new scopes by this. To grant one: partner-api scopes grant KEY SCOPE…',
  )
  addChangeCommand(
    modules,
    'deactivate',
    "Deactivate modules, which takes their scopes out of force for all of the partner's keys",
    'The keys still hold these scopes. Activating the module again puts them back in force.',
  )
}

function addChangeCommand(
  modules: Command,
  name: 'activate' | 'deactivate',
  description: string,
  note: string,
): void {
  const command = modules.command(name)
    .description(description)
    .argument('<partner>', "The partner's slug")
    .addArgument(new Argument('<module...>', 'Names of modules').choices(MODULE_NAMES))
    .addHelpText('after', `\nExample:\n  $ partner-api modules ${name} acme profiles countries`)
  setChangeAction(
    command,
    async (store, invocation, slug: string, names: readonly string[], _options: WaitOptions) => {
      const partner = await createPartnerAdministration(store, invocation)[name](slug, names)
      return { data: partnerJson(partner), text: formatModules(partner), notes: () => [note] }
    },
  )
}

async function list(invocation: Invocation, slug: string | undefined): Promise<void> {
  if (slug === undefined) return printResult(invocation, modulesJson(undefined), formatModules())
  await withStore(invocation, {}, async (store) => {
    const partner = await createPartnerAdministration(store, invocation).show(slug)
    await printResult(invocation, modulesJson(partner), formatModules(partner))
  })
}

function modulesJson(partner: Partner | undefined): unknown[] {
  return MODULE_NAMES.map((module) => ({
    module,
    ...(partner && { active: partner.modules.includes(module) }),
    scope: MODULES[module].scope,
    feature: MODULES[module].feature,
  }))
}

function formatModules(partner?: Partner): string {
  const rows = MODULE_NAMES.map((module) => {
    const active = partner && [partner.modules.includes(module) ? 'yes' : 'no']
    return [module, ...active ?? [], MODULES[module].scope, MODULES[module].feature]
  })
  return formatTable(['module', ...(partner ? ['active'] : []), 'needs', 'feature'], rows)
}

import { Argument, type Command } from 'commander'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { Partner } from '../../core/model.ts'
import { MODULE_NAMES, MODULES } from '../../core/policy/modules.ts'
import { action, addWaitOption, changeStore, type WaitOptions } from '../command.ts'
import type { Invocation } from '../invocation.ts'
import { partnerJson } from '../output/json.ts'
import { printResult } from '../output/print.ts'
import { formatTable } from '../output/text.ts'
import { withStore } from '../store.ts'

/** `modules list`, `activate` and `deactivate`. */
export function define(modules: Command): void {
  modules.command('list')
    .description('List the modules and the scope that each needs, and which are active for a partner')
    .argument('[partner]', "A partner's slug")
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
    'Switch modules on: keys of the partner may use the scopes that these need',
    'Keys that were issued before hold only the scopes they were given: partner-api scopes grant KEY SCOPE…',
  )
  addChangeCommand(
    modules,
    'deactivate',
    'Switch modules off: their scopes go out of force for all keys of the partner at once',
    'Keys keep the scopes they hold; activating the module again puts them back in force.',
  )
}

function addChangeCommand(
  modules: Command,
  name: 'activate' | 'deactivate',
  description: string,
  note: string,
): void {
  addWaitOption(
    modules.command(name)
      .description(description)
      .argument('<partner>', "The partner's slug")
      .addArgument(new Argument('<module...>', 'Names of modules').choices(MODULE_NAMES)),
  )
    .addHelpText('after', `\nExample:\n  $ partner-api modules ${name} acme profiles countries`)
    .action(
      action((invocation, slug: string, names: readonly string[], options: WaitOptions) =>
        changeStore(invocation, {}, options, async (store) => {
          const partner = await createPartnerAdministration(store, invocation)[name](slug, names)
          return { data: partnerJson(partner), text: formatModules(partner), notes: () => [note] }
        })
      ),
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

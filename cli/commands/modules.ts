import { Argument, type Command } from 'commander'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { Partner } from '../../core/model.ts'
import { MODULE_NAMES, MODULES } from '../../core/policy/modules.ts'
import { addWaitOption, changeStore, type WaitOptions } from '../change.ts'
import { action, type Invocation } from '../invocation.ts'
import { printResult } from '../output/print.ts'
import { table } from '../output/table.ts'
import { partnerWire } from '../output/wire.ts'
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

  change(
    modules,
    'activate',
    'Switch modules on: keys of the partner may use the scopes that these need',
    'Keys that were issued before hold only the scopes they were given: partner-api scopes grant KEY SCOPE…',
  )
  change(
    modules,
    'deactivate',
    'Switch modules off: their scopes go out of force for all keys of the partner at once',
    'Keys keep the scopes they hold; activating the module again puts them back in force.',
  )
}

function change(
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
          return { data: partnerWire(partner), text: moduleTable(partner), notes: () => [note] }
        })
      ),
    )
}

async function list(invocation: Invocation, slug: string | undefined): Promise<void> {
  if (slug === undefined) return printResult(invocation, wire(undefined), moduleTable())
  await withStore(invocation, {}, async (store) => {
    const partner = await createPartnerAdministration(store, invocation).show(slug)
    await printResult(invocation, wire(partner), moduleTable(partner))
  })
}

function wire(partner: Partner | undefined): unknown[] {
  return MODULE_NAMES.map((module) => ({
    module,
    ...(partner && { active: partner.modules.includes(module) }),
    scope: MODULES[module].scope,
    feature: MODULES[module].feature,
  }))
}

function moduleTable(partner?: Partner): string {
  const rows = MODULE_NAMES.map((module) => {
    const active = partner && [partner.modules.includes(module) ? 'yes' : 'no']
    return [module, ...active ?? [], MODULES[module].scope, MODULES[module].feature]
  })
  return table(['module', ...(partner ? ['active'] : []), 'needs', 'feature'], rows)
}

import { findPartner, readModules } from '../../core/admin/apply.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { partnerJson } from '../../core/admin/record-json.ts'
import type { ModuleDefinition, Modules, Partner } from '../../core/model.ts'
import type { Action, CliCommand } from '../command.ts'
import type { CommandResult, Output } from '../output/print.ts'
import { formatTable, yesOrNo } from '../output/text.ts'
import { modulesOf, withStore } from '../store/open.ts'

interface DefineOptions {
  readonly scope: string
  readonly feature: string
}

export function define(modules: CliCommand): void {
  modules
    .subcommand('list [partner]', 'List modules with their scopes, and whether they are active for a partner')
    .act(listModules)
    .examples('partner-api modules list', 'partner-api modules list acme')

  defineModuleChange(
    modules.subcommand(
      'activate <partner> <module...>',
      "Activate modules, which puts their scopes in force for the partner's keys",
    ),
    'Existing keys do not get the new scopes. To grant one: partner-api scopes grant KEY SCOPE…',
  )
  defineModuleChange(
    modules.subcommand(
      'deactivate <partner> <module...>',
      "Deactivate modules, which takes their scopes out of force for all of the partner's keys",
    ),
    'The keys still hold these scopes. Activating the module again puts them back in force.',
  ).dryRuns()

  modules.subcommand('define', 'Add a module, which puts a scope of your own endpoints in force')
    .argument('<name>', '1–40 of a-z, 0-9 and -, a letter first')
    .requiredOption('--scope <text>', 'Its scope: read, create, update or delete, a colon and a name')
    .requiredOption('--feature <text>', 'What it switches on, for lists of modules')
    .change(async (store, { operator, output }, name: string, { scope, feature }: DefineOptions) => {
      const module = await createModuleAdministration(store, operator).define({ name, scope, feature })
      const next = output.command(`modules activate SLUG ${name}`)
      return {
        data: moduleJson(module),
        text: formatTable(['module', 'needs', 'feature'], [[name, scope, feature]], output),
        notes: () => [`To activate it for a partner: ${next}`],
      }
    })
    .examples('partner-api modules define orders --scope read:orders --feature "Orders and their state"')

  modules.subcommand(
    'forget',
    'Remove a module that you have defined, and its scope from ended and disabled keys',
  )
    .argument('<name>', 'Its name')
    .change(async (store, { operator }, name: string) => {
      await createModuleAdministration(store, operator).forget(name)
      return { data: { module: name, forgotten: true }, text: `Forgot the module ${name}.\n` }
    })
    .details('Refused while a partner has it active, or a key in force holds its scope.')
    .examples('partner-api modules forget orders')
}

const moduleJson = ({ name: module, scope, feature }: ModuleDefinition) => ({ module, scope, feature })

function defineModuleChange(command: CliCommand, note: string): CliCommand {
  const name = command.name() as 'activate' | 'deactivate'
  return command
    .change(async (store, { operator, output }, slug: string, names: readonly string[]) => {
      const partner = await createPartnerAdministration(store, operator)[name](slug, names)
      const { text } = modulesResult(output, await readModules(store), partner)
      return { data: partnerJson(partner), text, notes: () => [note] }
    })
    .examples(`partner-api modules ${name} acme profiles countries`)
}

const listModules: Action<[string | undefined]> = async (invocation, slug) => {
  const { output } = invocation
  if (slug === undefined) return modulesResult(output, await modulesOf(invocation))
  return await withStore(
    invocation,
    {},
    async (store) => modulesResult(output, await readModules(store), await findPartner(store, slug)),
  )
}

function modulesResult(output: Output, { list }: Modules, partner?: Partner): CommandResult {
  if (partner === undefined) {
    const rows = list.map(({ name, scope, feature }) => [name, scope, feature])
    return { data: list.map(moduleJson), text: formatTable(['module', 'needs', 'feature'], rows, output) }
  }
  const data = list.map(({ name: module, scope, feature }) => {
    return { module, active: partner.modules.includes(module), scope, feature }
  })
  const rows = data.map(({ module, active, scope, feature }) => [module, yesOrNo(active), scope, feature])
  return { data, text: formatTable(['module', 'active', 'needs', 'feature'], rows, output) }
}

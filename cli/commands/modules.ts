import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { MODULE_NAMES, MODULES, type Partner } from '../../core/model.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { partnerJson } from '../../core/admin/record-json.ts'
import type { CommandResult, Output } from '../output/print.ts'
import { formatTable, yesOrNo } from '../output/text.ts'
import { withStore } from '../store/open.ts'

export function define(modules: CliCommand): void {
  modules
    .subcommand('list [partner]', 'List modules with their scopes, and whether they are active for a partner')
    .act(list)
    .examples('partner-api modules list', 'partner-api modules list acme')

  defineChange(
    modules,
    'activate',
    "Activate modules, which puts their scopes in force for the partner's keys",
    'Existing keys do not get new scopes by this. To grant one: partner-api scopes grant KEY SCOPE…',
  )
  defineChange(
    modules,
    'deactivate',
    "Deactivate modules, which takes their scopes out of force for all of the partner's keys",
    'The keys still hold these scopes. Activating the module again puts them back in force.',
  ).dryRuns()
}

function defineChange(
  modules: CliCommand,
  name: 'activate' | 'deactivate',
  description: string,
  note: string,
): CliCommand {
  return modules.subcommand(`${name} <partner> <module...>`, description)
    .change(async (store, invocation, slug: string, names: readonly string[]) => {
      const partner = await createPartnerAdministration(store, invocation)[name](slug, names)
      return {
        data: partnerJson(partner),
        text: modulesResult(invocation.output, partner).text,
        notes: () => [note],
      }
    })
    .examples(`partner-api modules ${name} acme profiles countries`)
}

async function list(invocation: Invocation, slug: string | undefined): Promise<void> {
  const { data, text } = slug === undefined
    ? modulesResult(invocation.output)
    : await withStore(invocation, {}, async (store) =>
      modulesResult(invocation.output, await createPartnerAdministration(store, invocation).show(slug)))
  await invocation.output.result(data, text)
}

function modulesResult(output: Output, partner?: Partner): CommandResult {
  const data = MODULE_NAMES.map((module) => {
    const active = partner && { active: partner.modules.includes(module) }
    return { module, ...active, scope: MODULES[module].scope, feature: MODULES[module].feature }
  })
  const rows = data.map((row) =>
    Object.values(row).map((cell) => typeof cell === 'boolean' ? yesOrNo(cell) : cell)
  )
  const headings = ['module', ...(partner ? ['active'] : []), 'needs', 'feature']
  return { data, text: formatTable(headings, rows, output) }
}

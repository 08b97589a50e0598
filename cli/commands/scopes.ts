import { Argument } from 'commander'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { Key } from '../../core/model.ts'
import { moduleForScope, MODULES, SCOPES } from '../../core/policy/modules.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, CommandResult, Invocation } from '../command.ts'
import { keyHelp } from '../options.ts'
import { keyJson } from '../output/json.ts'
import { formatTable } from '../output/text.ts'
import { timeOf } from '../store.ts'

/** `scopes list`, `show`, `grant` and `remove`. */
export function define(scopes: CliCommand): void {
  scopes.command('list')
    .description('List the scopes, and the module that puts each in force')
    .act(list)
    .examples('partner-api scopes list')

  scopes.command('show')
    .description('List the scopes of a key, and whether they are in force')
    .argument('<key>', keyHelp)
    .read(async (store, invocation, id: string) => {
      const key = await createKeyAdministration(store, invocation).show(id)
      return await scopesResult(
        store,
        invocation,
        key,
        `The key has no scopes. To grant one: partner-api scopes grant ${id} SCOPE…`,
      )
    })
    .examples('partner-api scopes show Zt81mQv04KsD')

  addChangeCommand(scopes, 'grant', 'Grant a key scopes that active modules of its partner need')
  addChangeCommand(scopes, 'remove', 'Remove scopes from a key')
}

function addChangeCommand(scopes: CliCommand, name: 'grant' | 'remove', description: string): void {
  scopes.command(name)
    .description(description)
    .argument('<key>', keyHelp)
    .addArgument(new Argument('<scope...>', 'Names of scopes').choices(SCOPES))
    .change(async (store, invocation, id: string, names: readonly string[]) => {
      const key = await createKeyAdministration(store, invocation)[name](id, names)
      const result = await scopesResult(store, invocation, key, 'The key has no scopes left.')
      return { ...result, data: keyJson(key, timeOf(store)) }
    })
    .examples(`partner-api scopes ${name} Zt81mQv04KsD read:banner read:plans`)
}

/** @param noteIfNone For a key without scopes. */
async function scopesResult(
  store: Store,
  invocation: Invocation,
  key: Key,
  noteIfNone: string,
): Promise<CommandResult> {
  const { modules } = await createPartnerAdministration(store, invocation).show(key.partner)
  const data = key.scopes.map((scope) => {
    const module = moduleForScope(scope)
    return { scope, in_force: modules.includes(module), module }
  })
  if (data.length === 0) return { data, text: '', notes: () => [noteIfNone] }
  const rows = data.map((
    { scope, in_force, module },
  ) => [scope, in_force ? 'yes' : 'no: module inactive', module])
  return { data, text: formatTable(['scope', 'in force', 'module'], rows, invocation.output) }
}

function list({ output }: Invocation): Promise<void> {
  const data = SCOPES.map((scope) => {
    const module = moduleForScope(scope)
    return { scope, module, feature: MODULES[module].feature }
  })
  const rows = data.map(Object.values<string>)
  return output.result(data, formatTable(['scope', 'module', 'feature'], rows, output))
}

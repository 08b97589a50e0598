import { findKey, findPartner, readModules } from '../../core/admin/apply.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import type { KeyFacts } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { keptNotes } from '../keys/relatives.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import type { CommandResult } from '../output/print.ts'
import { formatTable } from '../output/text.ts'
import { modulesOf, timeOf } from '../store/open.ts'

export function define(scopes: CliCommand): void {
  scopes.subcommand('list', 'List the scopes, and the module that puts each in force')
    .act(list)
    .examples('partner-api scopes list')

  scopes.subcommand('show <key>', 'List the scopes of a key, and whether they are in force')
    .read(async (store, invocation, id: string) => {
      const note = `The key has no scopes. To grant one: ${
        invocation.output.command(`scopes grant ${id} SCOPE…`)
      }`
      return await scopesResult(store, invocation, await findKey(store, id), note)
    })
    .examples('partner-api scopes show Zt81mQv04KsD')

  defineChange(scopes, 'grant', 'Grant a key scopes that active modules of its partner need')
  defineChange(scopes, 'remove', 'Remove scopes from a key').dryRuns()
}

function defineChange(scopes: CliCommand, name: 'grant' | 'remove', description: string): CliCommand {
  return scopes.subcommand(`${name} <key> <scope...>`, description)
    .change(async (store, invocation, id: string, names: readonly string[]) => {
      const { operator } = invocation
      const key = await createKeyAdministration(store, operator)[name](id, names)
      const facts = { key, partner: await findPartner(store, key.partner) }
      const result = await scopesResult(store, invocation, facts, 'The key has no scopes left.')
      const kept = name === 'remove'
        ? await keptNotes(store, invocation, key, (id) => ['scopes', 'remove', id, ...names])
        : []
      const notes = async () => [...await result.notes?.() ?? [], ...kept]
      return { ...result, data: keyJson(key, timeOf(store)), notes }
    })
    .examples(`partner-api scopes ${name} Zt81mQv04KsD read:banner read:plans`)
}

/** @param noteIfNone For a key without scopes. */
async function scopesResult(
  store: Store,
  { output }: Invocation,
  { key, partner }: KeyFacts,
  noteIfNone: string,
): Promise<CommandResult> {
  const modules = await readModules(store)
  const data = key.scopes.map((scope) => {
    const module = modules.moduleFor(scope)!
    return { scope, in_force: partner.modules.includes(module), module }
  })
  if (data.length === 0) return { data, text: '', notes: () => [noteIfNone] }
  const rows = data.map((row) => [row.scope, row.in_force ? 'yes' : 'no: module inactive', row.module])
  return { data, text: formatTable(['scope', 'in force', 'module'], rows, output) }
}

async function list(invocation: Invocation): Promise<CommandResult> {
  const { list } = await modulesOf(invocation)
  const data = list.map(({ name: module, scope, feature }) => ({ scope, module, feature }))
  const rows = data.map(Object.values<string>)
  return { data, text: formatTable(['scope', 'module', 'feature'], rows, invocation.output) }
}

import { Argument, type Command } from 'commander'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { Key } from '../../core/model.ts'
import { moduleForScope, MODULES, SCOPES } from '../../core/policy/modules.ts'
import type { Store } from '../../core/ports/store.ts'
import { action, type Invocation, setChangeAction, type WaitOptions } from '../command.ts'
import { keyJson } from '../output/json.ts'
import { printNote, printResult } from '../output/print.ts'
import { formatTable } from '../output/text.ts'
import { timeOf, withStore } from '../store.ts'

/** `scopes list`, `show`, `grant` and `remove`. */
export function define(scopes: Command): void {
  scopes.command('list')
    .description('List the scopes, and the module that puts each in force')
    .addHelpText('after', '\nExample:\n  $ partner-api scopes list')
    .action(action(list))

  scopes.command('show')
    .description('List the scopes of a key, and whether they are in force')
    .argument('<key>', "The key's id, see keys list")
    .addHelpText('after', '\nExample:\n  $ partner-api scopes show Zt81mQv04KsD')
    .action(action(show))

  addChangeCommand(scopes, 'grant', 'Grant a key scopes that active modules of its partner need')
  addChangeCommand(scopes, 'remove', 'Remove scopes from a key')
}

function addChangeCommand(scopes: Command, name: 'grant' | 'remove', description: string): void {
  const command = scopes.command(name)
    .description(description)
    .argument('<key>', "The key's id, see keys list")
    .addArgument(new Argument('<scope...>', 'Names of scopes').choices(SCOPES))
    .addHelpText('after', `\nExample:\n  $ partner-api scopes ${name} Zt81mQv04KsD read:banner read:plans`)
  setChangeAction(
    command,
    async (store, invocation, id: string, names: readonly string[], _options: WaitOptions) => {
      const key = await createKeyAdministration(store, invocation)[name](id, names)
      const rows = await scopeRows(store, invocation, key)
      return {
        data: keyJson(key, timeOf(store)),
        text: formatScopes(rows),
        notes: () => rows.length === 0 ? ['The key has no scopes left.'] : [],
      }
    },
  )
}

function show(invocation: Invocation, id: string): Promise<void> {
  return withStore(invocation, {}, async (store) => {
    const key = await createKeyAdministration(store, invocation).show(id)
    const rows = await scopeRows(store, invocation, key)
    await printResult(invocation, rows, formatScopes(rows))
    if (rows.length === 0) {
      printNote(`The key has no scopes. To grant one: partner-api scopes grant ${id} SCOPE…`)
    }
  })
}

async function scopeRows(store: Store, invocation: Invocation, key: Key) {
  const { modules } = await createPartnerAdministration(store, invocation).show(key.partner)
  return key.scopes.map((scope) => {
    const module = moduleForScope(scope)
    return { scope, in_force: modules.includes(module), module }
  })
}

function formatScopes(rows: Awaited<ReturnType<typeof scopeRows>>): string {
  if (rows.length === 0) return ''
  return formatTable(
    ['scope', 'in force', 'module'],
    rows.map(({ scope, in_force, module }) => [scope, in_force ? 'yes' : 'no: module inactive', module]),
  )
}

function list(invocation: Invocation): Promise<void> {
  const rows = SCOPES.map((scope) => {
    const module = moduleForScope(scope)
    return { scope, module, feature: MODULES[module].feature }
  })
  return printResult(
    invocation,
    rows,
    formatTable(
      ['scope', 'module', 'feature'],
      rows.map(({ scope, module, feature }) => [scope, module, feature]),
    ),
  )
}

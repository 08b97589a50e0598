import { findKey, findPartner, readModules } from '../../core/admin/apply.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { requireNames, requireNotRemoved } from '../../core/admin/validate.ts'
import type { Key, KeyFacts, Scope } from '../../core/model.ts'
import type { KeyFilter } from '../../core/ports/changes.ts'
import { readKeys, type Store } from '../../core/ports/store.ts'
import type { Action, CliCommand, Invocation } from '../command.ts'
import { keptNotes } from '../keys/relatives.ts'
import { serviceNameOption } from '../options.ts'
import { keyJson } from '../../core/admin/record-json.ts'
import type { CommandResult } from '../output/print.ts'
import { formatTable, printable } from '../output/text.ts'
import { modulesOf, readEndpoints, readIfAny, timeOf, withStore } from '../store/open.ts'

interface PlanOptions {
  readonly module: readonly string[]
  readonly partner?: string
  readonly serviceName: string
}

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

  scopes
    .subcommand('plan', 'Find the fewest scopes that modules need, and the commands that put them in force')
    .requiredOption('--module <module...>', 'The modules to use')
    .option('--partner <slug>', 'Plan only what this partner still needs')
    .option('--service-name <name>', 'Name of the service in paths', serviceNameOption, 'service')
    .act(plan)
    .details('Changes nothing. Reads the modules and endpoints of the store, if there is one.')
    .examples(
      'partner-api scopes plan --module profiles countries',
      'partner-api scopes plan --module profiles signup --partner acme',
    )
}

/** Prints what `--partner` lacks; everything without it. */
const plan: Action<[PlanOptions]> = async (invocation, { module, partner: slug, serviceName }) => {
  const { output } = invocation
  const { modules: known, endpoints } = await readIfAny(
    invocation,
    (store) => readEndpoints(store, serviceName),
  )
  const modules = requireNames('module', module, known.names)
  const scopes = modules.map((module) => known.scopeOf(module)!)
  const found = slug === undefined
    ? undefined
    : await withStore(invocation, {}, (store) => findSufficientKey(store, slug, scopes))
  const data = modules.map((module) => {
    const { scope, feature } = known.list.find(({ name }) => name === module)!
    const opened = endpoints.filter((endpoint) => endpoint.scope === scope)
    return { scope, module, feature, endpoints: opened.map(({ method, path }) => `${method} ${path}`) }
  })
  const inactive = modules.filter((module) => !found?.partner.modules.includes(module))
  const commands = {
    'To accept its requests': found?.partner.state === 'suspended' && `partners resume ${slug}`,
    'To activate the modules': inactive.length > 0 &&
      `modules activate ${slug ?? 'SLUG'} ${inactive.join(' ')}`,
    'To issue the key': !found?.key &&
      `keys issue ${slug ?? 'SLUG'} --name "Purpose of the key" --scope ${scopes.join(' ')}`,
  }
  const needed = Object.entries(commands).filter((each): each is [string, string] => !!each[1])
  const rows = data.flatMap(({ scope, module, feature, endpoints }) =>
    (endpoints.length > 0 ? endpoints : [''])
      .map((endpoint, index) => [...(index === 0 ? [scope, module, feature] : ['', '', '']), endpoint])
  )
  const keyNote = found?.key && `Key ${found.key.id} (${printable(found.key.name)}) holds these scopes.`
  const notes = needed.map(([purpose, command]) => `${purpose}: ${output.command(command)}`)
  return {
    data: {
      scopes: data,
      ...(found && { partner: slug, key_id: found.key?.id ?? null }),
      commands: needed.map(([, command]) => `partner-api ${command}`),
    },
    text: formatTable(['scope', 'module', 'for', 'opens'], rows, output),
    notes: () => output.json ? [] : [...keyNote ? [keyNote] : [], ...notes],
  }
}

/** The partner, and its active live key with all of these scopes and the fewest others, if there is one. */
async function findSufficientKey(store: Store, slug: string, scopes: readonly Scope[]) {
  const partner = await findPartner(store, slug)
  requireNotRemoved(partner)
  const filter: KeyFilter = { partner: slug, environment: 'live', scope: scopes[0], states: ['active'] }
  const now = timeOf(store)
  let key: Key | undefined
  for await (const each of readKeys(store, { ...filter, now })) {
    const holdsAll = scopes.every((scope) => each.scopes.includes(scope))
    if (holdsAll && each.scopes.length < (key?.scopes.length ?? Infinity)) key = each
  }
  return { partner, key }
}

function defineChange(scopes: CliCommand, name: 'grant' | 'remove', description: string): CliCommand {
  return scopes.subcommand(`${name} <key> <scope...>`, description)
    .change(async (store, invocation, id: string, names: readonly string[]) => {
      const key = await createKeyAdministration(store, invocation)[name](id, names)
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

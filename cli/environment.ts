/** Values of options from environment variables. An argument takes precedence over a variable. */
import type { Command, Option } from 'commander'
import { usageError } from './errors.ts'
import type { Io } from './output/print.ts'
import { suggest } from './suggest.ts'

/** The variable of an option. */
export interface Variable {
  /** The name that the command and the option make, such as `PARTNER_API_KEYS_LIST_LIMIT`. */
  readonly regularName: string
  /** `undefined` for what only an argument may say: a confirmation or a dry run is about one run. */
  readonly name: string | undefined
}

/** The variables of the options of all commands that are loaded. */
export type Variables = Map<Option, Variable>

/** Options that have no variable. */
const argumentsOnly: ReadonlySet<string> = new Set([
  'dry-run',
  'force',
  'replace',
  'reuse-port',
  'yes',
])

const webhookKeyFile = 'PARTNER_API_WEBHOOK_KEY_FILE'
const publicUrl = 'PARTNER_API_PUBLIC_URL'

/** The names that platforms set, and those that several commands share. */
const otherNames: Readonly<Record<string, string>> = {
  PARTNER_API_SERVE_PORT: 'PORT',
  PARTNER_API_SERVE_HOST: 'HOST',
  PARTNER_API_SERVE_WEBHOOK_KEY_FILE: webhookKeyFile,
  PARTNER_API_DOCTOR_WEBHOOK_KEY_FILE: webhookKeyFile,
  PARTNER_API_WEBHOOKS_CREATE_WEBHOOK_KEY_FILE: webhookKeyFile,
  PARTNER_API_WEBHOOKS_ROTATE_SECRET_WEBHOOK_KEY_FILE: webhookKeyFile,
  PARTNER_API_WEBHOOKS_TEST_WEBHOOK_KEY_FILE: webhookKeyFile,
  PARTNER_API_KEYS_ISSUE_PUBLIC_URL: publicUrl,
  PARTNER_API_KEYS_ROTATE_PUBLIC_URL: publicUrl,
}

/** Pairs of options that exclude each other, by their attributes. */
const conflicts: readonly (readonly [attribute: string, other: string])[] = [
  ['dryRun', 'wait'],
  ['clearAllow', 'allow'],
  ['never', 'expires'],
  ['csv', 'html'],
  ['csv', 'json'],
  ['status', 'keyPrefix'],
]

const secrets: ReadonlySet<string> = new Set(['PARTNER_API_KEY', 'PARTNER_API_WEBHOOK_KEY'])

/** Variables that no option reads; the last two belong to the client's examples. */
const furtherVariables: ReadonlySet<string> = new Set([
  ...secrets,
  'PARTNER_API_DEBUG',
  'PARTNER_API_URL',
  'PARTNER_API_PARTNER',
])

/** What Kubernetes sets for services whose names begin with `partner-api`. */
const serviceVariables =
  /_SERVICE_HOST=|_SERVICE_PORT(?:_\w+)?=|_PORT=\w+:\/\/|_PORT_\d+_[A-Z]+(?:_PROTO|_PORT|_ADDR)?=/

function isOfKubernetes(name: string, env: Io['env']): boolean {
  return name.startsWith('PARTNER_API_') && serviceVariables.test(`${name}=${env[name]}`)
}

/**
 * Reads a variable without the white space around it, such as the line feed of a Secret or the carriage return of a
 * file: of a secret, only one line end at its end.
 * @returns `undefined` for an absent or empty one.
 */
export function readVariable(env: Io['env'], name: string): string | undefined {
  const text = env[name]
  const value = secrets.has(name) ? text?.replace(/\r?\n?$/, '') : text?.trim()
  return value || undefined
}

/** @param path The names of the command of an option below the program. */
export function variableOf(path: readonly string[], option: Option): Variable {
  const words = ['partner-api', ...path, option.name()]
  const regularName = words.join('_').replaceAll('-', '_').toUpperCase()
  const isArgument = argumentsOnly.has(option.name())
  return { regularName, name: isArgument ? undefined : otherNames[regularName] ?? regularName }
}

/** The attributes of the options that an option excludes. */
export function conflictsOf(option: Option): string[] {
  const name = option.attributeName()
  return conflicts.filter((pair) => pair.includes(name)).flat().filter((other) => other !== name)
}

/** Sets the options of a command that are not arguments. @throws {CliError} exit code 2 for an invalid value. */
export function setFromVariables(command: Command, variables: Variables, env: Io['env']): void {
  const isArgument = (attribute: string) => command.getOptionValueSourceWithGlobals(attribute) === 'cli'
  for (const option of command.options) {
    const name = variables.get(option)?.name
    if (name === undefined || isOfKubernetes(name, env)) continue
    const text = readVariable(env, name)
    if (text === undefined) continue
    const attribute = option.attributeName()
    if ([attribute, ...conflictsOf(option)].some(isArgument)) continue
    let value: unknown
    try {
      value = parseValue(option, text)
    } catch (error) {
      throw usageError(`${name}: ${(error as Error).message}`)
    }
    if (value !== undefined) command.setOptionValueWithSource(attribute, value, 'environment')
  }
  // A variable of the program gives way to an argument of the command.
  for (const option of command.parent?.options ?? []) {
    const attribute = option.attributeName()
    if (!isArgument(attribute) && conflictsOf(option).some(isArgument)) {
      command.parent!.setOptionValue(attribute, undefined)
    }
  }
}

/**
 * Parses a value as an argument would be, and a list as its parts in order.
 *
 * @returns `undefined` for an absent flag.
 */
function parseValue(option: Option, text: string): unknown {
  if (!option.required && !option.optional) {
    if (text === '1' || text === 'true') return !option.negate
    if (text === '0' || text === 'false') return undefined
    throw new TypeError('It must be 1, true, 0 or false.')
  }
  // A limit can be repeated, but is not variadic: operands may follow it.
  const isList = option.variadic || option.flags.includes('<policy=')
  const texts = isList ? text.split(/\s+/) : [text]
  if (option.parseArg === undefined) return isList ? texts : text
  return texts.reduce((previous: unknown, each) => option.parseArg!(each, previous), undefined)
}

/** The unknown variables with this program's prefix. A misspelled `PARTNER_API_STORE` would create another store. */
export function unknownVariables(variables: Variables, env: Io['env']): readonly string[] {
  const known = new Set([...variables.values()].map(({ name }) => name))
  return Object.keys(env).filter((name) =>
    name.startsWith('PARTNER_API_') && !furtherVariables.has(name) && !known.has(name) &&
    !isOfKubernetes(name, env)
  )
}

/** The sentence about an unknown variable, with the known one that may be meant. */
export function describeUnknown(unknown: string, variables: Variables): string {
  const all = [...variables.values()]
  const regular = all.find(({ regularName }) => regularName === unknown)
  if (regular === undefined) {
    const names = all.flatMap(({ name }) => name ?? [])
    return `There is no option for the variable ${unknown}.${suggest(unknown, [...new Set(names)])}`
  }
  return regular.name === undefined
    ? `There is no variable ${unknown}: the option must be an argument.`
    : `There is no variable ${unknown}.\n(Did you mean ${regular.name}?)`
}

/** Values of options from the environment and from the configuration file. Arguments take precedence over both. */
import { readFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import type { Command, Option } from 'commander'
import { isObject, parseJson } from '../core/lib/json.ts'
import { type CliError, usageError } from './errors.ts'
import { describeFileError, requireOwnFile } from './files.ts'
import type { Io } from './output/print.ts'
import { suggest } from './suggest.ts'

/** The values of one command by the names of its options, and those of its subcommands by their names. */
type Section = Readonly<Record<string, unknown>>

interface ConfigFile {
  readonly path: string
  readonly values: Section
}

/** The values of one run that are not arguments. */
export interface Settings {
  file?: ConfigFile | undefined
  /** `text` is the value as an argument; `source` is `environment NAME` or `file PATH`. */
  readonly values: Map<Option, { readonly text: string; readonly source: string }>
}

/** What only an argument can say: a confirmation or a dry run is about one run. */
const argumentsOnly: ReadonlySet<string> = new Set(['config', 'dry-run', 'force', 'revoke', 'version', 'yes'])

/** Sets the options that are no arguments. The program comes first. @throws {CliError} exit code 2 for an invalid value. */
export function applySettings(command: Command, settings: Settings, env: Io['env']): void {
  const path = pathOf(command)
  if (path.length === 0) settings.file = readConfigFile(command.opts().config, env)
  const { file } = settings
  const options = settableOptions(command)
  // The member of this name is the option.
  const section = path[0] === 'store' ? {} : readSection(file, path)
  const known = [...options, ...command.commands].map((each) => each.name())
  const unknown = Object.keys(section).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const reason = argumentsOnly.has(unknown)
      ? 'It must be an argument.'
      : 'There is no such option or command.'
    throw settingError(file, [...path, unknown], reason + suggest(unknown, [...new Set(known)]))
  }
  for (const option of options) {
    const name = option.name()
    const attribute = option.attributeName()
    const variable = variablesOf(command, option).find((each) => env[each]) ?? ''
    const text = env[variable] || undefined
    const isInFile = text === undefined
    const value = isInFile ? section[name] : fromText(option, text)
    const isArgument = command.getOptionValueSource(attribute) === 'cli' ||
      conflictsWithArgument(option, command)
    if (isArgument || isInFile && value === undefined) continue
    try {
      const source = isInFile ? 'config' : 'environment'
      command.setOptionValueWithSource(attribute, parseValue(option, value), source)
    } catch (error) {
      const { message } = error as Error
      throw isInFile ? settingError(file, [...path, name], message) : usageError(`${variable}: ${message}`)
    }
    const source = isInFile ? `file ${file!.path}` : `environment ${variable}`
    settings.values.set(option, { text: [value].flat().join(' '), source })
  }
  for (const option of command.parent?.options ?? []) {
    const attribute = option.attributeName()
    if (command.parent!.getOptionValueSource(attribute) === 'cli') continue
    if (conflictsWithArgument(option, command)) command.parent!.setOptionValue(attribute, undefined)
  }
}

function settableOptions(command: Command): readonly Option[] {
  return command.options.filter((option) => !argumentsOnly.has(option.name()))
}

/** A value that is no argument gives way to an argument, of this command or of the program. */
function conflictsWithArgument(option: Option, command: Command): boolean {
  const conflict = (a: Option, b: Option) =>
    (a as Option & { conflictsWith: readonly string[] }).conflictsWith.includes(b.attributeName())
  return [...command.options, ...command.parent?.options ?? []].some((other) =>
    command.getOptionValueSourceWithGlobals(other.attributeName()) === 'cli' &&
    (conflict(option, other) || conflict(other, option))
  )
}

/** The environment variables of an option; the first that is set counts. */
function variablesOf(command: Command, option: Option): readonly string[] {
  const name = ['partner-api', ...pathOf(command), option.name()].join('_').replaceAll('-', '_')
    .toUpperCase()
  return option.envVar === undefined ? [name] : [name, option.envVar]
}

export function allVariables(command: Command): readonly string[] {
  const own = settableOptions(command).flatMap((option) => variablesOf(command, option))
  return [...own, ...command.commands.flatMap(allVariables)]
}

/** The names of a command below the program. */
export function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()]
}

/**
 * The file in the working folder is never read: it could send a key of `verify` to another host. @throws {CliError}
 */
function readConfigFile(argument: string | undefined, env: Io['env']): ConfigFile | undefined {
  const named = argument ?? (env.PARTNER_API_CONFIG || undefined)
  const home = env.XDG_CONFIG_HOME && isAbsolute(env.XDG_CONFIG_HOME)
    ? env.XDG_CONFIG_HOME
    : env.HOME && join(env.HOME, '.config')
  const path = named ?? (home && join(home, 'partner-api', 'config.json'))
  if (!path) return undefined
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (named === undefined) return undefined
    throw usageError(`The configuration file ${path} can't be read: ${describeFileError(error)}.`)
  }
  requireOwnFile(path)
  const values = parseJson(text)
  if (!isObject(values)) throw usageError(`The configuration file ${path} is not a JSON object.`)
  return { path, values }
}

function readSection(config: ConfigFile | undefined, path: readonly string[]): Section {
  let section: Section = config?.values ?? {}
  for (const [index, name] of path.entries()) {
    const next = Object.hasOwn(section, name) ? section[name] : {}
    if (!isObject(next)) {
      throw settingError(config, path.slice(0, index + 1), 'It must be an object of options.')
    }
    section = next
  }
  return section
}

function settingError(config: ConfigFile | undefined, path: readonly string[], reason: string): CliError {
  return usageError(`${config!.path}: ${path.join('.')}: ${reason}`)
}

function fromText(option: Option, text: string): unknown {
  if (option.required || option.optional) return option.variadic ? text.trim().split(/\s+/) : text
  return { 1: true, true: true, 0: false, false: false }[text]
}

/** Parses a value as the same argument, or the same arguments in order, would be. */
function parseValue(option: Option, value: unknown): unknown {
  if (!option.required && !option.optional) {
    if (typeof value !== 'boolean') throw new TypeError('It must be true or false.')
    return value !== option.negate
  }
  const values: unknown[] = [value].flat()
  const isText = values.every((each) => typeof each === 'string' || typeof each === 'number')
  if (!isText) throw new TypeError('It must be text or a number.')
  const texts = values.map(String)
  if (option.parseArg === undefined) return option.variadic ? texts : texts.at(-1)
  return texts.reduce((previous: unknown, text) => option.parseArg!(text, previous), undefined)
}

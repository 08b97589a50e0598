import type { Option } from 'commander'
import type { CliCommand, Invocation } from '../command.ts'
import { usageError } from '../errors.ts'
import { formatTable, redact } from '../output/text.ts'
import { suggest } from '../suggest.ts'

export function define(config: CliCommand): void {
  config.subcommand('show', 'Show the global options, and those of a command, with the source of each value')
    .argument('[command...]', 'A command, such as serve or keys list')
    .act((invocation, words: readonly string[]) => show(config.parent as CliCommand, invocation, words))
    .details(`
An argument takes precedence over an environment variable, and that over the configuration file: --config,
PARTNER_API_CONFIG, or else partner-api/config.json in $XDG_CONFIG_HOME (~/.config by default). The file is a JSON
object of options without their dashes; those of a command are in an object of its name, and lists are arrays:

  {"serve": {"port": 8080, "limit": ["key=1200/60", "authfail=0"]}}

Variables are named PARTNER_API_STORE for --store, and PARTNER_API_KEYS_LIST_LIMIT for keys list --limit. --yes, --force
and --revoke must be arguments.`)
    .examples('partner-api config show', 'PARTNER_API_SERVE_PORT=8080 partner-api config show serve --json')
}

async function show(program: CliCommand, { output }: Invocation, words: readonly string[]) {
  const { command, rest } = await program.find(words)
  if (rest.length > 0) {
    const names = command.commands.map((each) => each.name())
    throw usageError(`There is no command ${words.join(' ')}.${suggest(rest[0]!, names)}`)
  }
  const commands = command === program ? [program] : [program, command]
  const data = commands.flatMap((each) => {
    if (each !== program) each.parseOptions([])
    return each.createHelp().visibleOptions(each)
      .filter(({ long }) => !/^--(?:help|version)$/.test(long ?? ''))
      .map((option) => ({ option: option.name(), ...describe(each, option) }))
  })
  const rows = data.map(({ option, value, source }) => [option, value ?? 'none', source])
  return { data, text: formatTable(['option', 'value', 'source'], rows, output) }
}

function describe(command: CliCommand, option: Option): { value: string | null; source: string } {
  const { text, source } = command.run.settings.values.get(option) ?? {}
  if (text !== undefined && source !== undefined) return { value: redact(text), source }
  const value: unknown = option.defaultValueDescription ?? command.getOptionValue(option.attributeName())
  const isArgument = command.getOptionValueSource(option.attributeName()) === 'cli'
  return {
    value: value === undefined ? null : redact(String(value)),
    source: isArgument ? 'argument' : 'default',
  }
}

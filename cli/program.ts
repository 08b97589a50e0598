import process from 'node:process'
import { Command, CommanderError, Option } from 'commander'
import { validateName } from '../core/admin/validate.ts'
import { containsKey } from '../core/http/redact.ts'
import { type CliError, type ExitCode, toCliError, usageError } from './errors.ts'
import { optionParser } from './options.ts'
import { exitOnClosedPipe, printError, printNote } from './output/print.ts'
import { formatStack, joinList, redact } from './output/text.ts'

/** What each command does, under its heading in the help; its file in commands/ is loaded when it is asked for. */
const commandGroups: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'To run the service:': {
    serve: 'Serve the API over HTTP until SIGTERM or SIGINT',
    demo: 'Fill an empty store with sample content and a key, and serve it',
    migrate: "Make the store, or bring its schema up to this version's",
  },
  'To operate it:': {
    partners: 'Create, list, update, suspend, resume and remove partners',
    modules: 'Switch integration modules of a partner on and off',
    keys: 'Issue, list, rotate, limit, disable, enable and revoke keys',
    scopes: 'Grant scopes to a key and remove them',
    content: 'Import, export and remove profiles, banners, industries and plans',
    signups: 'List and export what partners sent from their forms',
    explain: 'Say whether a key may make a request, rule by rule',
    audit: 'List what operators changed, and verify that the list is whole',
    store: 'Copy all of a store to another place',
  },
  'To integrate with one:': {
    verify: 'Ask any deployment what a key may do for a partner, and try it',
    openapi: 'Print the OpenAPI document of the service',
  },
}

/**
 * Runs one command line.
 *
 * @param argv The arguments after the program's name.
 * @returns The exit code.
 */
export async function run(argv: readonly string[], version: string): Promise<ExitCode> {
  exitOnClosedPipe()
  const optionArguments = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv
  const json = optionArguments.includes('--json')
  // What is thrown where nobody waits for it would be shown with its stack otherwise.
  process.once('uncaughtException', (error) => reportError(error, json).then((code) => process.exit(code)))
  hideCredentials(argv)
  const program = createProgram(version)
  try {
    rejectKeys(argv)
    await program.parseAsync(translateHelpCommand(argv, version), { from: 'user' })
    return (process.exitCode ?? 0) as ExitCode
  } catch (error) {
    return await reportError(withSuggestion(withUnknownOption(error, program, argv), program, argv), json)
  }
}

/** `help` may stand where a command does, also after the program's options: what follows it is asked for `--help`. */
function translateHelpCommand(argv: readonly string[], version: string): readonly string[] {
  if (!argv.includes('help')) return argv
  const { operands: [command, ...operands], unknown } = createProgram(version).parseOptions([...argv])
  return command === 'help' ? [...operands, ...unknown, '--help'] : argv
}

async function reportError(error: unknown, json: boolean): Promise<ExitCode> {
  if (error instanceof CommanderError && error.exitCode === 0) return 0
  const cliError = error instanceof CommanderError ? toUsageError(error) : await toCliError(error)
  if (process.env.PARTNER_API_DEBUG === '1' && !(error instanceof CommanderError)) {
    printNote(formatStack(error))
  }
  await printError(cliError, json)
  return cliError.exitCode
}

const actorOption = optionParser(
  'It must have 1 to 200 characters, no control characters or line breaks, and must not be a key.',
  (text) => validateName(text) === undefined ? text : undefined,
)

function createProgram(version: string): Command {
  const program = new Command('partner-api')
    .description('A partner integration API: partners, modules, keys, scopes and read-only content.')
    .version(version, '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print help for a command')
    .helpCommand(false)
    .addOption(
      new Option('--store <url>', 'The store: sqlite:FILE, postgres://USER@HOST/NAME or memory:')
        .env('PARTNER_API_STORE')
        .default('sqlite:partner-api.db'),
    )
    .option('--actor <name>', 'Who the audit log names for changes (default: the current user)', actorOption)
    .option('--json', 'Print one JSON document on standard output')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
  for (const [heading, commands] of Object.entries(commandGroups)) {
    program.commandsGroup(heading)
    for (const [name, summary] of Object.entries(commands)) program.command(name).description(summary)
  }
  program.hook('preSubcommand', async (_program, command) => {
    const { define }: { define(command: Command): void } = await import(`./commands/${command.name()}.ts`)
    define(command.helpCommand('help [command]', 'Print help for a command'))
  })
  return program.addHelpText(
    'after',
    `
Examples:
  $ partner-api demo
  $ partner-api partners create acme --name "Acme Travel" --module profiles countries
  $ partner-api keys issue acme --name "WordPress plugin"
  $ partner-api serve --port 8787
  $ partner-api verify --url https://api.example --partner acme --smoke

partner-api COMMAND --help has the options and examples of each command.
Exit codes: 0 done or valid, 1 refused or invalid, 2 usage, 3 store or deployment out of reach.`,
  )
}

/** `ps` shows everybody what a program was started with, until it calls itself something else. Bun has no such way. */
function hideCredentials(argv: readonly string[]): void {
  const shown = argv.map(redact)
  if (shown.some((argument, index) => argument !== argv[index])) {
    process.title = ['partner-api', ...shown].join(' ')
  }
}

/** Arguments stand in the shell's history and in the list of processes, which others on the machine can read. */
function rejectKeys(argv: readonly string[]): void {
  if (!argv.some(containsKey)) return
  throw usageError(
    'An argument holds a whole key. Others on this machine can read arguments, so keys are never taken from ' +
      'them: commands name a key by its id (keys list), and verify reads one from PARTNER_API_KEY, --key-file FILE, ' +
      'standard input or a prompt. Consider that key known and replace it.',
  )
}

/** Commander's own complaints all are about the command line. */
function toUsageError(error: CommanderError): CliError {
  // `help` is what it says when a subcommand is missing, and its message then has no words of its own.
  if (error.code === 'commander.help') return usageError('A command is missing: --help lists them.')
  // What stands behind `=` may be a secret, given to an option that does not exist.
  const message = error.message.replace(/^error: (unknown option '[^=']+=).*'/s, "$1…'")
  return usageError(message.replace(/^error: /, ''))
}

/** Commander asks for options that are missing before it looks for those that do not exist, and one may be the other. */
function withUnknownOption(error: unknown, program: Command, argv: readonly string[]): unknown {
  if (!(error instanceof CommanderError) || error.code !== 'commander.missingMandatoryOptionValue') {
    return error
  }
  const name = findUnknownOption(program, argv)
  if (name === undefined) return error
  return usageError(`${error.message.replace(/^error: /, '')}, and there is no option '${name}'`)
}

/** Words that people try, and the commands that they may mean. */
const addVerbs = ['create', 'issue', 'activate', 'grant', 'import']
const removeVerbs = ['remove', 'revoke', 'deactivate']
const synonyms = new Map([
  ...['add', 'create', 'new'].map((word): [string, string[]] => [word, addVerbs]),
  ['delete', removeVerbs],
  ['rm', removeVerbs],
  ['ls', ['list']],
  ['get', ['show']],
  ['edit', ['update']],
  ['usage', ['show', '--help']],
])

function withSuggestion(error: unknown, program: Command, argv: readonly string[]): unknown {
  if (!(error instanceof CommanderError) || error.code !== 'commander.unknownCommand') return error
  const [first, second = ''] = program.parseOptions([...argv]).operands
  const group = program.commands.find((each) => each.name() === first)
  const commands = (group ?? program).commands.map((each) => each.name())
  const suggestions = (synonyms.get((group === undefined ? first : second) ?? '') ?? [])
    .filter((name) => name === '--help' || commands.includes(name))
  if (suggestions.length === 0) return error
  return usageError(
    `${toUsageError(error).message.split('\n', 1)[0]}\n(Did you mean ${joinList(suggestions, 'or')}?)`,
  )
}

function findUnknownOption(command: Command, argv: readonly string[]): string | undefined {
  const { operands: [name, ...operands], unknown } = command.parseOptions([...argv])
  const next = command.commands.find((each) => each.name() === name)
  return next === undefined ? unknown[0]?.split('=')[0] : findUnknownOption(next, [...operands, ...unknown])
}

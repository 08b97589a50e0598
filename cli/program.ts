import process from 'node:process'
import { CommanderError, Help } from 'commander'
import { findNameProblem } from '../core/admin/validate.ts'
import { containsKey } from '../core/http/redact.ts'
import { CliCommand, isHelpFlag, pathOf, type Run } from './command.ts'
import { describeUnknown, readVariable, unknownVariables } from './environment.ts'
import { type CliError, type ExitCode, toCliError, usageError } from './errors.ts'
import { optionParser } from './options.ts'
import { type Io, Output } from './output/print.ts'
import { formatStack, redact } from './output/text.ts'

interface CommandEntry {
  readonly description: string
  /** Loads its definition, when it runs. */
  load(): ReturnType<Run['load']>
}

/** The commands, by the headings of the help. */
const commandGroups: Readonly<Record<string, Readonly<Record<string, CommandEntry>>>> = {
  'To run the service:': {
    serve: {
      description: 'Serve the API over HTTP until SIGTERM or SIGINT',
      load: () => import('./serve/command.ts'),
    },
    demo: {
      description: 'Fill an empty store with sample content and a key, and serve it',
      load: () => import('./serve/demo.ts'),
    },
    migrate: {
      description: 'Create the store, or migrate its schema to this version',
      load: () => import('./store/migrate.ts'),
    },
  },
  'To operate it:': {
    partners: {
      description: 'Create, list, update, suspend, resume and remove partners',
      load: () => import('./commands/partners.ts'),
    },
    modules: {
      description: 'Activate and deactivate integration modules of a partner',
      load: () => import('./commands/modules.ts'),
    },
    keys: {
      description: 'Issue, import, list, rotate, limit, disable, enable and revoke keys',
      load: () => import('./keys/command.ts'),
    },
    claims: {
      description: 'List and revoke one-time links to keys',
      load: () => import('./commands/claims.ts'),
    },
    scopes: {
      description: 'List the scopes of a key, grant them and remove them',
      load: () => import('./commands/scopes.ts'),
    },
    content: {
      description: 'Import, export and remove profiles, banners, industries and plans',
      load: () => import('./commands/content.ts'),
    },
    signups: {
      description: 'List, export and delete signups',
      load: () => import('./commands/signups.ts'),
    },
    webhooks: {
      description: 'Send events such as signups to URLs, and list deliveries',
      load: () => import('./webhooks/command.ts'),
    },
    reports: {
      description: 'Report requests, errors and signups of partners by day, endpoint, plan and country',
      load: () => import('./reports/command.ts'),
    },
    problems: {
      description: 'List what keys were refused in the last 7 days',
      load: () => import('./commands/problems.ts'),
    },
    explain: {
      description: 'Explain whether a key may make a request, rule by rule',
      load: () => import('./commands/explain.ts'),
    },
    audit: {
      description: 'List administrative changes, and verify the audit log',
      load: () => import('./commands/audit.ts'),
    },
    doctor: {
      description: 'Check an installation, and show how to fix each issue',
      load: () => import('./doctor/command.ts'),
    },
    store: {
      description: 'Back up, restore and copy a store',
      load: () => import('./store/command.ts'),
    },
    completions: {
      description: 'Print the completion script for bash, zsh or fish',
      load: () => import('./commands/completions.ts'),
    },
  },
  'To integrate with one:': {
    verify: {
      description: 'Check a key against any deployment, and test the endpoints it may use',
      load: () => import('./verify/command.ts'),
    },
    openapi: {
      description: 'Print the OpenAPI document of the service',
      load: () => import('./commands/openapi.ts'),
    },
  },
}

/** All commands, by name. */
export const commands: Readonly<Record<string, CommandEntry>> = Object.assign(
  {},
  ...Object.values(commandGroups),
)

export async function runProcess(argv: readonly string[], version: string): Promise<void> {
  const io = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
  let env: Io['env'] = {}
  let denied: unknown
  try {
    env = { ...process.env }
  } catch (error) {
    denied = error // Deno without --allow-env.
  }
  const output = createOutput(argv, { ...io, env })
  // Output reports the errors of its own writes.
  for (const stream of [io.stdout, io.stderr]) stream.on('error', () => {})
  silenceSqliteWarning()
  hideCredentials(argv)
  process.once('uncaughtException', async (error) => {
    process.exit(await reportError(error, output, env))
  })
  process.exitCode = denied === undefined
    ? await run(argv, version, { ...io, env }, output)
    : await reportError(denied, output, env)
}

/** Runs one command line. @param argv The arguments after the program's name. */
export async function run(
  argv: readonly string[],
  version: string,
  io: Io,
  output: Output = createOutput(argv, io),
): Promise<ExitCode> {
  let text = ''
  const program = createProgram(version, createRun(io, output), (help) => text += help)
  try {
    rejectKeys(argv)
    await program.parseAsync(await translateHelp(argv, program), { from: 'user' }).catch(async (error) => {
      if (!(error instanceof CommanderError) || error.exitCode !== 0) throw error
      await output.print({ data: error.code === 'commander.version' ? { version } : { help: text }, text })
    })
    return program.run.exitCode
  } catch (error) {
    const reason = error instanceof CommanderError ? toUsageError(error) : error
    return await reportError(reason, output, io.env)
  }
}

/**
 * Help, the version and usage errors have the form that is asked for, too: they come before or instead of a command.
 */
function createOutput(argv: readonly string[], io: Io): Output {
  const optionArguments = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv
  const variable = readVariable(io.env, 'PARTNER_API_JSON') ?? ''
  return new Output(io, optionArguments.includes('--json') || ['1', 'true'].includes(variable))
}

/** Suppresses the warning of Node 22 and 24 that node:sqlite is experimental. */
function silenceSqliteWarning(): void {
  const emitWarning = process.emitWarning as (...args: unknown[]) => void
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite ')) return
    emitWarning.apply(process, args)
  }
}

/** Turns `help COMMAND`, also of a group and after global options, into `COMMAND --help`. */
async function translateHelp(argv: readonly string[], program: CliCommand): Promise<readonly string[]> {
  if (!argv.some((word) => word === 'help' || isHelpFlag(word))) return argv
  const { operands, unknown } = program.parseOptions([...argv])
  const { command, rest } = await program.find(operands)
  const isHelpCommand = command.commands.length > 0 && rest[0] === 'help'
  if (!isHelpCommand && !unknown.some(isHelpFlag)) return argv
  const words = [...pathOf(command), ...rest.filter((word) => word !== 'help')]
  const named = await program.find(words)
  // Commander refuses a command that does not exist, but not in front of --help, where it prints the help of the group.
  if (named.command.commands.length > 0 && named.rest.length > 0) return words
  return [...words, ...unknown, '--help']
}

async function reportError(error: unknown, output: Output, env: Io['env']): Promise<ExitCode> {
  const cliError = toCliError(error)
  if (readVariable(env, 'PARTNER_API_DEBUG') === '1') output.note(formatStack(error))
  await output.error(cliError)
  return cliError.exitCode
}

const actorOption = optionParser(
  'It must have 1 to 200 characters, no control characters or line breaks, and must not be a key.',
  (text) => findNameProblem(text) === undefined ? text : undefined,
)

export async function loadProgram(version: string, io: Io): Promise<CliCommand> {
  const program = createProgram(version, createRun(io, createOutput([], io)))
  await Promise.all(program.commands.map((command) => (command as CliCommand).load()))
  return program
}

function createRun(io: Io, output: Output): Run {
  return { io, output, exitCode: 0, variables: new Map(), load: (name) => commands[name]!.load() }
}

/** @param writeHelp Gets help and version. */
function createProgram(version: string, run: Run, writeHelp?: (text: string) => void): CliCommand {
  const program = new CliCommand('partner-api', run)
    .description('A partner integration API: partners, modules, keys, scopes and read-only content.')
    .version(version, '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print help for a command')
    .helpCommand(false)
    .option(
      '--store <url>',
      'The store: sqlite:FILE, postgres://USER@HOST/NAME or memory:',
      'sqlite:partner-api.db',
    )
    .option('--actor <name>', 'Your name in the audit log (default: the current user)', actorOption)
    .option('--json', 'Print one JSON document on standard output')
    .configureHelp({
      showGlobalOptions: true,
      minWidthToWrap: 20,
      optionDescription(option) {
        const text = Help.prototype.optionDescription.call(this, option)
        const { name } = run.variables.get(option) ?? {}
        return name === undefined ? text : `${text} [${name}]`
      },
    })
    .configureOutput({
      ...(writeHelp && { writeOut: writeHelp }),
      writeErr: (text) => void run.output.writeError(text),
      outputError: () => {},
    })
    .exitOverride()
  for (const [heading, group] of Object.entries(commandGroups)) {
    program.commandsGroup(heading)
    for (const [name, { description }] of Object.entries(group)) program.subcommand(name, description)
  }
  program.hook('preSubcommand', async (_program, command) => {
    await (command as CliCommand).load()
  })
  program.hook('preAction', () => rejectUnknownVariables(program))
  return program
    .examples(
      'partner-api demo',
      'partner-api partners create acme --name "Acme Travel" --module profiles countries',
      'partner-api keys issue acme --name "WordPress plugin"',
      'partner-api serve --port 8787',
      'partner-api verify --url https://api.example --partner acme --smoke',
    )
    .details(`
partner-api COMMAND --help prints the options and examples of a command.

Exit codes: 0 done or valid, 1 refused or invalid, 2 usage, 3 store or deployment unreachable.`)
}

async function rejectUnknownVariables(program: CliCommand): Promise<void> {
  const { io: { env }, variables } = program.run
  if (unknownVariables(variables, env).length === 0) return
  await Promise.all(program.commands.map((command) => (command as CliCommand).load()))
  const [unknown] = unknownVariables(variables, env)
  if (unknown !== undefined) throw usageError(describeUnknown(unknown, variables))
}

/** Changes what `ps` shows. Bun ignores it. */
function hideCredentials(argv: readonly string[]): void {
  const redacted = argv.map(redact)
  if (redacted.some((argument, index) => argument !== argv[index])) {
    process.title = ['partner-api', ...redacted].join(' ')
  }
}

function rejectKeys(argv: readonly string[]): void {
  if (!argv.some(containsKey)) return
  throw usageError(
    'An argument contains a key. Arguments are visible to other users of this machine, so no command accepts a key as ' +
      'one: commands identify a key by its id (keys list), and verify reads a key from PARTNER_API_KEY, --key-file FILE, ' +
      'standard input or a prompt. Rotate this key: others may have read it.',
  )
}

/** All errors of Commander are usage errors. */
function toUsageError({ code, message }: CommanderError): CliError {
  // Commander's message for a missing subcommand is empty.
  if (code === 'commander.help') return usageError('A command is missing: --help lists them.')
  const sentence = message.replace(/^error: /, '')
  // The value of an unknown option may be a secret.
  if (code === 'commander.unknownOption') return usageError(sentence.replace(/=.*'/s, "=…'"))
  const hasSuggestion = sentence.includes('\n')
  if (code !== 'commander.unknownCommand' || hasSuggestion) return usageError(sentence)
  return usageError(`${sentence}: --help lists the commands`)
}

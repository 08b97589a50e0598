/** The man page of the command line, from the definitions that `--help` prints. */
import process from 'node:process'
import { type CliCommand, pathOf } from '../command.ts'
import { loadProgram } from '../program.ts'

/** Builds `partner-api.1`. @see https://man7.org/linux/man-pages/man7/groff_man.7.html */
export async function formatManPage(version: string, date: string): Promise<string> {
  const program = await loadProgram(version, process)
  const lines = [
    `.TH PARTNER\\-API 1 "${date}" "partner\\-api ${version}" "User Commands"`,
    '.SH NAME',
    `partner\\-api \\- ${escape(program.description())}`,
    '.SH SYNOPSIS',
    '.B partner\\-api',
    escape(program.usage()),
    '.SH OPTIONS',
    ...formatCommand(program).slice(1),
    '.SH COMMANDS',
    ...leaves(program).flatMap(formatCommand),
  ]
  return `${lines.join('\n')}\n`
}

function leaves(command: CliCommand): CliCommand[] {
  const commands = command.createHelp().visibleCommands(command).filter((each) => each.name() !== 'help')
  return (commands as CliCommand[]).flatMap((each) => each.commands.length > 0 ? leaves(each) : [each])
}

function formatCommand(command: CliCommand): string[] {
  const help = command.createHelp()
  const items = [
    ...help.visibleArguments(command)
      .map((each) => [help.argumentTerm(each), help.argumentDescription(each)]),
    ...help.visibleOptions(command).filter(({ long }) => long !== '--help')
      .map((each) => [help.optionTerm(each), help.optionDescription(each)]),
  ]
  return [
    `.SS ${escape(pathOf(command).join(' '))}`,
    `.B partner\\-api ${escape([...pathOf(command), command.usage()].join(' '))}`,
    '.PP',
    escape(command.description()),
    ...items.flatMap(([term = '', description = '']) => ['.TP', `.B ${escape(term)}`, escape(description)]),
    ...command.notes.flatMap((text) => text.split(/\n{2,}/)).flatMap((text) => ['.PP', ...formatText(text)]),
    ...command.exampleLines.length > 0 ? ['.PP', ...preformat(command.exampleLines)] : [],
  ]
}

/** Text that begins with a space keeps its line breaks. */
function formatText(text: string): string[] {
  return text.startsWith(' ') ? preformat(text.split('\n')) : text.split('\n').map(escape)
}

function preformat(lines: readonly string[]): string[] {
  return ['.RS 4', '.nf', ...lines.map(escape), '.fi', '.RE']
}

function escape(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replaceAll('…', '...')
    .replaceAll('–', '\\(en').replace(/^\./, '\\&.')
}

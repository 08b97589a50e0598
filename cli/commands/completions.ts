import type { Argument, Option } from 'commander'
import type { CliCommand, Invocation } from '../command.ts'
import { printable } from '../output/text.ts'

type Candidate = readonly [word: string, description: string]
/** A shell completes file names itself. */
const files = ':files'

/** `completions bash`, `zsh` and `fish`, which print a script that calls the hidden `completions complete`. */
export function define(completions: CliCommand): void {
  const installations = {
    bash: 'partner-api completions bash > ~/.local/share/bash-completion/completions/partner-api',
    zsh: 'partner-api completions zsh > ~/.zfunc/_partner-api',
    fish: 'partner-api completions fish > ~/.config/fish/completions/partner-api.fish',
  }
  for (const [shell, example] of Object.entries(installations)) {
    completions.subcommand(shell, `Print the completion script for ${shell}`)
      .act(() => ({ data: scripts[shell], text: scripts[shell]! }))
      .details('Completes commands, options, the words that they take, and names of files.')
      .examples(example)
  }
  completions.command('complete', { hidden: true })
    .argument('[word...]', 'The words before the cursor; the last one is completed')
    .act((invocation, words: readonly string[]) =>
      complete(completions.parent as CliCommand, invocation, words).catch(() => {})
    )
}

async function complete(
  program: CliCommand,
  invocation: Invocation,
  words: readonly string[],
): Promise<void> {
  const typed = words.at(-1) ?? ''
  const [, assigned, text = typed] = /^(--[^=]+)=(.*)$/s.exec(typed) ?? []
  const before = words.slice(0, -1)
  const lastOption = before.findLastIndex((word) => word.startsWith('-'))
  const isValue = lastOption !== -1 && lastOption === before.length - 1
  // Commander refuses an option without its value.
  const { operands: names, unknown } = program.parseOptions(isValue ? before.slice(0, -1) : before)
  const { command, rest } = await program.find(names)
  const operands = command === program ? rest : command.parseOptions([...rest, ...unknown]).operands
  const help = command.createHelp()
  const options = [...help.visibleOptions(command), ...program.options]
  const named = assigned ?? before[lastOption]
  const taking = options.find(({ long, short, required, variadic }) =>
    required && (assigned || isValue || variadic) && named && [long, short].includes(named)
  )
  let candidates: readonly Candidate[] | typeof files = []
  if (text.startsWith('-')) {
    candidates = options.map(({ long, short, description }) => [long ?? short!, description])
  } else if (taking !== undefined || command.commands.length === 0) {
    const all = command.registeredArguments
    const argument = all[operands.length] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined)
    candidates = candidatesFor(taking ?? argument)
  } else if (operands.length === 0) {
    candidates = help.visibleCommands(command).map((each) => [each.name(), each.description()])
  }
  const lines = candidates === files ? [files] : candidates
    .filter(([word]) => word.startsWith(text))
    .map(([word, description]) => `${assigned ? `${assigned}=` : ''}${word}\t${printable(description)}`)
  await invocation.output.write(lines.map((line) => `${line}\n`).join(''))
}

function candidatesFor(parameter: Option | Argument | undefined): readonly Candidate[] | typeof files {
  if (parameter === undefined) return []
  if (parameter.argChoices) return parameter.argChoices.map((word) => [word, ''])
  const name = 'long' in parameter ? `${parameter.long} ${parameter.flags}` : `<${parameter.name()}>`
  return /<(?:\w+-)?(?:file|path|folder)/.test(name) ? files : []
}

// Bash splits words at = and :, which are joined here, and replaces only the part after them.
const scripts: Readonly<Record<string, string>> = {
  bash: `_partner_api() {
  local word joined=() cut lines description
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    local last=$((\${#joined[@]} - 1))
    if ((last >= 0)) && { [[ $word == [=:]* ]] || [[ -n $word && \${joined[last]} == *[=:] ]]; }; then
      joined[last]+=$word
    else
      joined+=("$word")
    fi
  done
  word=\${joined[\${#joined[@]} - 1]}
  cut=\${word%"\${word##*[=:]}"}
  lines=$("\${COMP_WORDS[0]}" completions complete -- "\${joined[@]}" 2>/dev/null </dev/null)
  COMPREPLY=()
  if [[ $lines == :files ]]; then
    compopt -o filenames 2>/dev/null
    lines=$(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}") cut=
  fi
  while IFS=$'\\t' read -r word description; do
    [[ -z $word ]] || COMPREPLY+=("\${word#"$cut"}")
  done <<< "$lines"
}
complete -F _partner_api partner-api
`,
  zsh: `#compdef partner-api
_partner_api() {
  local -a lines values
  local line
  lines=("\${(@f)$("$words[1]" completions complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)}")
  if [[ $lines[1] == :files ]]; then
    _files
    return
  fi
  for line in $lines; do
    values+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -V 'partner-api' values
}
if [[ $funcstack[1] == _partner_api || $funcstack[1] == _partner-api ]]; then
  _partner_api "$@"
else
  compdef _partner_api partner-api
fi
`,
  fish: `function __partner_api_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l lines ($words[1] completions complete -- $words[2..] $current 2>/dev/null </dev/null)
  if test "$lines" = ':files'
    __fish_complete_path $current
  else
    printf '%s\\n' $lines
  end
end
complete -c partner-api -f -a '(__partner_api_complete)'
`,
}

/** Completions, in the shells themselves. */
import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { cleanEnv, MAIN, newFile, programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'

const PARTNER_API_STORE = `sqlite:${newFile()}`
const { run } = programOn(PARTNER_API_STORE)

const folder = temporaryFolder()
const program = join(folder, 'partner-api')
writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`)
chmodSync(program, 0o755)
writeFileSync(join(folder, 'banners.jsonl'), '')
for (const shell of ['bash', 'zsh', 'fish']) {
  const { code, stdout } = await run('completions', shell)
  if (code !== 0) throw new Error(`completions ${shell} failed`)
  writeFileSync(join(folder, shell), stdout)
}

/** Prints what a shell offers for the last word of each line. */
const drivers: Readonly<
  Record<string, readonly [args: readonly string[], script: (line: string) => string]>
> = {
  bash: [['--norc', '-c'], (line) => {
    // Readline splits words at = and : too.
    const words = line.split(/(?<=[=:])|(?=[=:])| /)
    return `source ./bash; shopt -s nullglob; COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})
      COMP_CWORD=${words.length - 1}; _partner_api; printf '%s\n' "\${COMPREPLY[@]}"`
  }],
  zsh: [['-f', '-c'], (line) =>
    `function compdef() {}; source ./zsh
      function _describe() { local name=\${@[-1]} each; for each in "\${(@P)name}"; do
        each=\${\${each//'\\:'/@}%%:*}; each=\${each//@/:}
        [[ $each == "$words[CURRENT]"* ]] && print -r -- $each; done }
      function _files() { print -rl -- "$words[CURRENT]"*(N) }
      words=(${line.split(' ').map((word) => `'${word}'`).join(' ')}); CURRENT=$#words; _partner_api`],
  fish: [
    ['--no-config', '-c'],
    (line) => `source ./fish; complete -C '${line}' | string replace -r '\\t.*' ''`,
  ],
}

const cases: Readonly<Record<string, readonly string[]>> = {
  'partner-api keys iss': ['issue'],
  'partner-api keys issue acme-travel --na': ['--name'],
  'partner-api partners show ': [],
  'partner-api content export indu': ['industries'],
  'partner-api serve --log err': ['errors'],
  'partner-api content import industries ban': ['banners.jsonl'],
  'partner-api serve --prot 3 --hos': ['--host'],
  'partner-api nonsense ': [],
}

for (const [shell, [args, script]] of Object.entries(drivers)) {
  const skip = spawnSync(shell, ['--version']).status === 0 ? false : `${shell} is not installed`
  test(`${shell} completes commands, options, choices and files`, { skip }, (t) => {
    for (const [line, expected] of Object.entries(cases)) {
      const { stdout, stderr } = spawnSync(shell, [...args, script(line)], {
        encoding: 'utf8',
        cwd: folder,
        env: cleanEnv({ PATH: [folder, process.env.PATH].join(delimiter), PARTNER_API_STORE, HOME: folder }),
      })
      t.same(stdout.split('\n').filter(Boolean).sort(), wordsOf(shell, expected), `${line}${stderr}`)
    }
    t.end()
  })
}

/** Bash replaces only what follows the last : or =. */
function wordsOf(shell: string, words: readonly string[]): readonly string[] {
  return shell === 'bash' ? words.map((word) => word.replace(/^.*[=:]/, '')) : words
}

test('what a shell asks for is silent and creates no store', async (t) => {
  const store = newFile()
  const complete = (...words: string[]) =>
    runProgram(['completions', 'complete', '--', ...words], { env: { PARTNER_API_STORE: `sqlite:${store}` } })
  const silent = { code: 0, stdout: '', stderr: '' }
  t.match(await complete('partners', 'show', ''), silent)
  t.match(await complete('serve', '--port', 'x', '--limit', 'x', '--lo', ''), silent)
  t.match(await runProgram(['partners', 'list'], { env: { PARTNER_API_STORE: `sqlite:${store}` } }), {
    code: 3,
  })
  t.match(await complete('demo', '--no-s'), { stdout: /^--no-serve\t/ })
  t.match((await run('completions', '--help')).stdout, /bash(?!.* complete )/s)
})

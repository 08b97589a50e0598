import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { CliError, usageError } from './errors.ts'
import { endBySignal } from './files.ts'
import type { Io } from './output/print.ts'

/** Prompts go to standard error, since standard output may be a file. */
type Terminal = Pick<Io, 'stdin' | 'stderr'>

export function isInteractive({ stdin, stderr }: Terminal): boolean {
  return stdin.isTTY === true && stderr.isTTY === true
}

/** Asks for `word` to confirm something. @param consequence A sentence. */
export async function confirm(terminal: Terminal, consequence: string, word: string): Promise<void> {
  const { stdin, stderr } = terminal
  if (!isInteractive(terminal)) {
    throw usageError(`${consequence} Pass --yes to skip this prompt.`)
  }
  if ((await ask(stdin, stderr, `${consequence}\nType ${word} to confirm: `, stderr)).trim() !== word) {
    throw new CliError(1, 'not_confirmed', 'Nothing was changed.')
  }
}

/** Reads a secret, possibly empty, without echoing it. */
export async function promptHidden({ stdin, stderr }: Terminal, prompt: string): Promise<string> {
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() })
  const input = ask(stdin, hidden, '', stderr)
  // After the terminal has stopped echoing: input that arrives early must not be shown either.
  stderr.write(prompt)
  try {
    return await input
  } finally {
    stderr.write('\n')
  }
}

/** Ctrl-C interrupts the program. @returns The line, empty at the end of the input. */
async function ask(
  input: Io['stdin'],
  output: Writable,
  question: string,
  stderr: Writable,
): Promise<string> {
  const terminal = createInterface({ input, output, terminal: true })
  const closed = new Promise<string>((resolve) => {
    let isInterrupted = false
    // The signal may arrive later: an interrupt is not an empty line.
    terminal.once('close', () => isInterrupted || resolve(''))
    terminal.once('SIGINT', () => {
      isInterrupted = true
      terminal.close()
      stderr.write('\n')
      endBySignal('SIGINT')
    })
  })
  try {
    return await Promise.race([terminal.question(question), closed])
  } finally {
    terminal.close()
  }
}

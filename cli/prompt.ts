import process from 'node:process'
import { createInterface } from 'node:readline/promises'
import { CliError, usageError } from './errors.ts'
import type { Io } from './output/print.ts'

/**
 * Asks for confirmation of something that cannot be undone.
 *
 * @param consequence A sentence.
 * @throws {CliError} exit code 2 without a terminal, 1 when the input is not `word`.
 */
export async function confirm(
  { stdin, stderr }: Pick<Io, 'stdin' | 'stderr'>,
  consequence: string,
  word: string,
): Promise<void> {
  if (!stdin.isTTY || !stderr.isTTY) {
    throw usageError(`${consequence} This cannot be undone. Pass --yes to skip this prompt.`)
  }
  // Prompts go to standard error, since standard output may be a file.
  const terminal = createInterface({ input: stdin, output: stderr })
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const input = terminal.question(`${consequence}\nType ${word} to confirm: `)
    if ((await Promise.race([input, closed])).trim() !== word) {
      throw new CliError(1, 'not_confirmed', 'Nothing was changed.')
    }
  } finally {
    terminal.close()
  }
}

/**
 * Reads a secret from the terminal without echoing it. Backspace and Ctrl-U edit, Ctrl-D on an empty line ends the input,
 * Ctrl-C interrupts the program. The terminal is restored in every case.
 *
 * @returns The input, possibly empty.
 */
export function promptHidden(
  { stdin, stderr }: Pick<Io, 'stdin' | 'stderr'>,
  prompt: string,
): Promise<string> {
  stdin.setEncoding('utf8')
  // Before the prompt: input that arrives early must not be echoed either.
  stdin.setRawMode?.(true)
  stderr.write(prompt)
  return new Promise((resolve) => {
    let input = ''

    function restoreTerminal(): void {
      stdin.off('data', onInput)
      stdin.setRawMode?.(false)
      stdin.pause()
      stderr.write('\n')
    }

    function onInput(chunk: string | Buffer): void {
      for (const character of chunk.toString()) {
        if (character === '\r' || character === '\n' || character === '\u0004') {
          restoreTerminal()
          return resolve(input)
        }
        if (character === '\u0003') {
          restoreTerminal()
          process.kill(process.pid, 'SIGINT')
          return
        }
        if (character === '\u007f' || character === '\b') input = input.slice(0, -1)
        else if (character === '\u0015') input = ''
        else input += character
      }
    }

    stdin.on('data', onInput)
    stdin.resume()
  })
}

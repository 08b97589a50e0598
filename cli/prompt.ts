import process from 'node:process'
import { createInterface } from 'node:readline/promises'
import { CliError, usageError } from './errors.ts'

/**
 * Has a person type a word before something that cannot be taken back. Without a terminal nobody is there to ask.
 *
 * @param question What is about to be done, a sentence.
 * @throws {CliError} exit code 2 without a terminal, 1 when something else is typed.
 */
export async function confirm(question: string, word: string): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw usageError(`${question} That is final: with --yes it is done without being asked for.`)
  }
  // On standard error, as everything for people is: standard output may be a file.
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const typed = await Promise.race([terminal.question(`${question}\nType ${word} to confirm: `), closed])
    if (typed.trim() !== word) throw new CliError(1, 'not_confirmed', 'Nothing was changed.')
  } finally {
    terminal.close()
  }
}

/**
 * Asks on the terminal and shows nothing of what is typed. Backspace and Ctrl-U correct, Ctrl-D on an empty
 * line gives up, Ctrl-C ends the program as it would anywhere; the terminal is as before in every case.
 *
 * @returns What was typed, possibly nothing.
 */
export function promptHidden(question: string): Promise<string> {
  const { stdin, stderr } = process
  stdin.setEncoding('utf8')
  // Before the question shows: whoever is quick to answer must not see it echoed.
  stdin.setRawMode(true)
  stderr.write(question)
  return new Promise((resolve) => {
    let typed = ''

    function restoreTerminal(): void {
      stdin.off('data', onInput)
      stdin.setRawMode(false)
      stdin.pause()
      stderr.write('\n')
    }

    function onInput(chunk: string | Buffer): void {
      for (const character of chunk.toString()) {
        if (character === '\r' || character === '\n' || character === '\u0004') {
          restoreTerminal()
          return resolve(typed)
        }
        if (character === '\u0003') {
          restoreTerminal()
          process.kill(process.pid, 'SIGINT')
          return
        }
        if (character === '\u007f' || character === '\b') typed = typed.slice(0, -1)
        else if (character === '\u0015') typed = ''
        else typed += character
      }
    }

    stdin.on('data', onInput)
    stdin.resume()
  })
}

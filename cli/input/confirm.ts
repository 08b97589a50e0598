import process from 'node:process'
import { createInterface } from 'node:readline/promises'
import { Failure, usageFailure } from '../failure.ts'

/**
 * Has a person type a word before something that cannot be taken back. Without a terminal nobody is there to ask.
 *
 * @param question What is about to be done, a sentence.
 * @throws {Failure} exit code 2 without a terminal, 1 when something else is typed.
 */
export async function confirm(question: string, word: string): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw usageFailure(`${question} That is final: with --yes it is done without being asked for.`)
  }
  // On standard error, as everything for people is: standard output may be a file.
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const typed = await Promise.race([terminal.question(`${question}\nType ${word} to confirm: `), closed])
    if (typed.trim() !== word) throw new Failure(1, 'not_confirmed', 'Nothing was changed.')
  } finally {
    terminal.close()
  }
}

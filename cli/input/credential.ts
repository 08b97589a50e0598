import { createReadStream } from 'node:fs'
import process from 'node:process'
import { isWellFormedKey, KEY_PREFIX_PATTERN, keyIdIn } from '../../core/keys/format.ts'
import { Failure, usageFailure } from '../failure.ts'
import { reasonOf } from './lines.ts'

/** More than any key: whoever names a file of another kind hears so before it is read to its end. */
const maxBytes = 4_096

/**
 * Finds the key: in `keyFile`, `PARTNER_API_KEY`, standard input when that is no terminal, or a prompt that
 * shows nothing of it.
 *
 * @throws {Failure} exit code 2 when there is none.
 */
export async function readCredential(keyFile: string | undefined): Promise<string> {
  if (keyFile !== undefined) {
    return theKey(await readSmall(createReadStream(keyFile), keyFile), `The file ${keyFile}`)
  }
  if (process.env.PARTNER_API_KEY) return theKey(process.env.PARTNER_API_KEY, 'PARTNER_API_KEY')
  if (!process.stdin.isTTY) {
    // A line is enough: a program that writes the key may keep its end open.
    return theKey(
      await readSmall(process.stdin, 'standard input', (text) => text.trimStart().includes('\n')),
      'Standard input',
    )
  }
  return theKey(await promptHidden('Key (not shown): '), 'What was typed')
}

/** The public id of a key of any store, `undefined` for what its form or checksum shows to be none. */
export function publicIdOf(key: string): string | undefined {
  const [prefix = ''] = key.split('_', 1)
  return KEY_PREFIX_PATTERN.test(prefix) && isWellFormedKey(key, prefix) ? keyIdIn(key, prefix) : undefined
}

async function readSmall(
  stream: AsyncIterable<Buffer | string>,
  name: string,
  isEnough?: (text: string) => boolean,
): Promise<string> {
  let text = ''
  try {
    for await (const chunk of stream) {
      text += chunk.toString()
      if (text.length > maxBytes) throw usageFailure(`What ${name} holds is too long for a key.`)
      if (isEnough?.(text)) break
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw usageFailure(`The key can't be read from ${name}: ${reasonOf(error)}.`)
  }
  return text
}

function theKey(text: string, source: string): string {
  const key = text.trim()
  if (key === '') {
    throw usageFailure(
      `${source} holds no key. It is looked for in --key-file FILE, PARTNER_API_KEY, standard input and a prompt.`,
    )
  }
  // What is no visible ASCII can stand in no header, and in no key.
  if (!/^[!-~]+$/.test(key)) throw usageFailure(`${source} holds something else than one key.`)
  return key
}

/**
 * Asks on the terminal and shows nothing of what is typed. Backspace and Ctrl-U correct, Ctrl-D on an empty
 * line gives up, Ctrl-C ends the program as it would anywhere; the terminal is as before in every case.
 *
 * @returns What was typed, possibly nothing.
 */
function promptHidden(question: string): Promise<string> {
  const { stdin, stderr } = process
  stdin.setEncoding('utf8')
  // Before the question shows: whoever is quick to answer must not see it echoed.
  stdin.setRawMode(true)
  stderr.write(question)
  return new Promise((resolve) => {
    let typed = ''

    function end(): void {
      stdin.off('data', take)
      stdin.setRawMode(false)
      stdin.pause()
      stderr.write('\n')
    }

    function take(chunk: string | Buffer): void {
      for (const character of chunk.toString()) {
        if (character === '\r' || character === '\n' || character === '\u0004') {
          end()
          return resolve(typed)
        }
        if (character === '\u0003') {
          end()
          process.kill(process.pid, 'SIGINT')
          return
        }
        if (character === '\u007f' || character === '\b') typed = typed.slice(0, -1)
        else if (character === '\u0015') typed = ''
        else typed += character
      }
    }

    stdin.on('data', take)
    stdin.resume()
  })
}

import process from 'node:process'

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

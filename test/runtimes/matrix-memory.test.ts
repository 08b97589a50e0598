/** The contract of stores and the HTTP contract on SQLite in memory, on Node, Bun and Deno. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { cleanEnv } from '../support/cli-program.ts'
import { absence, isOlderNode, RUNTIMES } from './runtimes.ts'

const script = fileURLToPath(new URL('store-child.ts', import.meta.url))
const runtimes = RUNTIMES.filter((runtime) => !isOlderNode(runtime))

t.jobs = runtimes.length
for (const runtime of runtimes) {
  t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false }, async (t) => {
    const [program = '', ...args] = runtime.command
    const { stdout, stderr } = await promisify(execFile)(program, [...args, script], { env: cleanEnv() })
    t.equal(stderr, '')
    t.match(stdout, /^\d{3} passed\n$/)
  })
}

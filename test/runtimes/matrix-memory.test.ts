/** The contract of stores on SQLite in memory, on Bun and Deno. `npm test` runs it on Node. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { cleanEnv } from '../support/cli-program.ts'
import { absence, RUNTIMES } from './runtimes.ts'

const script = fileURLToPath(new URL('store-child.ts', import.meta.url))
const runtimes = RUNTIMES.filter(({ name }) => !name.startsWith('Node'))

t.jobs = runtimes.length
for (const runtime of runtimes) {
  t.test(runtime.name, { buffered: true, skip: absence(runtime) ?? false }, async (t) => {
    const [program = '', ...args] = runtime.command
    const { stdout, stderr } = await promisify(execFile)(program, [...args, script], { env: cleanEnv() })
    t.equal(stderr, '')
    t.match(stdout, /^\d{2,3} passed\n$/)
  })
}

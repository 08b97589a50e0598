/** Runs the program with a resolver that says that every name is this machine. */
import dns from 'node:dns'
import process from 'node:process'

const answer = [{ address: '127.0.0.1', family: 4 }]
dns.lookup =
  ((_name: string, _options: unknown, callback: (error: null, found: typeof answer) => void) =>
    callback(null, answer)) as unknown as typeof dns.lookup
const { runProcess } = await import('../../cli/program.ts')
await runProcess(process.argv.slice(2), '0.0.0')

/**
 * Revokes keys with the command line while clients use them, and prints how long they were accepted:
 * `node test/integration/trials/revoke-key.ts 10`. No request may pass later than `max_staleness_ms` after the command has ended.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const main = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const trials = Number(process.argv[2] ?? 10)
const maxStalenessMs = 1000
const folder = mkdtempSync(join(tmpdir(), 'partner-api-revoke-'))
const environment = { ...process.env, PARTNER_API_STORE: `sqlite:${join(folder, 'store.db')}` }

async function command(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { env: environment })
  return stdout.trim()
}

await command('partners', 'create', 'acme', '--name', 'Acme', '--module', 'pricing')
const settings = ['--limit', 'key=0', '--limit', 'authfail=0', '--log', 'off']
const child = spawn(process.execPath, [main, 'serve', '--port', '0', ...settings], {
  env: environment,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [line] = await once(child.stdout, 'data')
const target = `${String(line).trim().replace('listening on ', '')}/service/public/plans?partner=acme`
const delays: number[] = []
let passedAfterRefusal = 0

for (let trial = 0; trial < trials; trial++) {
  const { data } = JSON.parse(await command('keys', 'issue', 'acme', '--name', `trial ${trial}`, '--json'))
  let revokedAt = Infinity
  let refusedAt = Infinity
  const revoked = command('keys', 'revoke', data.id).then(() => revokedAt = performance.now())
  while (performance.now() < revokedAt + 2 * maxStalenessMs) {
    const askedAt = performance.now()
    const { status } = await fetch(target, { headers: { 'x-service-partner-key': data.key } })
    if (status === 200 && askedAt > refusedAt) passedAfterRefusal++
    if (status === 401) refusedAt = Math.min(refusedAt, askedAt)
    if (refusedAt < askedAt - 200 && revokedAt < Infinity) break
  }
  await revoked
  delays.push(refusedAt - revokedAt)
}

child.kill('SIGTERM')
await once(child, 'close')
rmSync(folder, { recursive: true })
delays.sort((a, b) => a - b)
const ms = (delay: number | undefined): string => `${Math.round(delay ?? Number.NaN)} ms`
console.log(
  `${trials} revocations, first refusal after the command: median ${ms(delays[trials >> 1])}, last ${
    ms(delays.at(-1))
  }`,
)
console.log(
  `${passedAfterRefusal} requests passed after the first refusal; the bound is ${maxStalenessMs} ms`,
)
process.exitCode = passedAfterRefusal === 0 && delays.every((delay) => delay <= maxStalenessMs) ? 0 : 1

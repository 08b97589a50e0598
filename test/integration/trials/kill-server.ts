/**
 * Kills a server with SIGKILL during signups, and counts the stored ones: `node test/integration/trials/kill-server.ts 50`.
 * Every acknowledged signup must be in the store once. Repeated with their keys, the others are doubled by none, and
 * those that were acknowledged last are answered as before, as replays.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const kills = Number(process.argv[2] ?? 50)
const folder = mkdtempSync(join(tmpdir(), 'partner-api-kills-'))
const environment = { ...process.env, PARTNER_API_STORE: `sqlite:${join(folder, 'store.db')}` }

function command(...args: string[]): string {
  return execFileSync(process.execPath, [main, ...args], {
    env: environment,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

async function serve(): Promise<{ child: ChildProcess; base: string }> {
  const limits = ['--limit', 'key=0', '--limit', 'signup=0']
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', ...limits], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout!, 'data')
  return { child, base: String(line).trim().replace('listening on ', '') }
}

interface Receipt {
  readonly id: string
  readonly isReplay: boolean
}

/** @returns `undefined` if the server was killed before it answered. */
async function sign(base: string, key: string, number: number): Promise<Receipt | undefined> {
  try {
    const answer = await fetch(`${base}/service/partner/signups`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-partner-key': key,
        'idempotency-key': `trial-${number}`,
      },
      body: JSON.stringify({
        partner: 'acme',
        email: `someone${number}@mail.example`,
        name: `Someone ${number}`,
      }),
    })
    const { data } = await answer.json()
    if (answer.status !== 201) throw new TypeError(`answered with ${answer.status}`)
    return { id: data.id, isReplay: answer.headers.get('idempotent-replayed') === 'true' }
  } catch (error) {
    if (error instanceof TypeError && !error.message.startsWith('answered')) return undefined
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

command('partners', 'create', 'acme', '--name', 'Acme', '--module', 'signup')
const key = command('keys', 'issue', 'acme', '--name', 'trial', '--quiet').trim()
/** How many of the latest acknowledged signups are repeated after each kill. */
const replays = 20
const acknowledged = new Map<number, string>()
const unanswered = new Set<number>()
let next = 0
let repeated = 0
let replayed = 0
let wrongReplays = 0

/** Repeats the unanswered signups and the latest acknowledged ones. */
async function repeat(base: string): Promise<void> {
  for (const [number, id] of [...acknowledged].slice(-replays)) {
    const receipt = await sign(base, key, number)
    if (receipt?.id !== id || !receipt.isReplay) wrongReplays++
    replayed++
  }
  for (const number of unanswered) {
    const receipt = await sign(base, key, number)
    if (receipt === undefined) throw new Error('The server ended before it was killed.')
    acknowledged.set(number, receipt.id)
    repeated++
  }
  unanswered.clear()
}

for (let kill = 0; kill < kills; kill++) {
  const { child, base } = await serve()
  await repeat(base)
  const closed = once(child, 'close')
  let running = true
  const senders = Array.from({ length: 8 }, async () => {
    while (running) {
      const number = next++
      const receipt = await sign(base, key, number)
      if (receipt === undefined) unanswered.add(number)
      else acknowledged.set(number, receipt.id)
    }
  })
  setTimeout(() => child.kill('SIGKILL'), 30 + Math.random() * 250)
  await closed
  running = false
  await Promise.all(senders)
}

const { child, base } = await serve()
await repeat(base)
child.kill('SIGTERM')
await once(child, 'close')

const kept = command('signups', 'export').trim().split('\n').map((line) =>
  JSON.parse(line) as { id: string; email: string }
)
const ids = new Set(kept.map(({ id }) => id))
const people = new Set(kept.map(({ email }) => email))
const lost = [...acknowledged.values()].filter((id) => !ids.has(id)).length
console.log(
  `${kills} kills, ${acknowledged.size} acknowledged, ${repeated} repeated, ${replayed} replayed, ${kept.length} kept`,
)
console.log(
  `${lost} lost, ${kept.length - people.size} doubled, ${
    ids.size - new Set(acknowledged.values()).size
  } not acknowledged, ${wrongReplays} not replayed as they were`,
)
rmSync(folder, { recursive: true })
const isKept = lost === 0 && wrongReplays === 0 && replayed > 0 && people.size === kept.length &&
  ids.size === acknowledged.size
process.exitCode = isKept ? 0 : 1

/** Concurrent clients of each documented host get their own responses, whatever the host does to others. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { binary } from '../package/installed.ts'
import { cleanEnv } from '../support/cli-program.ts'
import { startWorker } from '../support/workerd-process.ts'
import type { Mounted } from './mounted.ts'

const clients = 50

const node = [process.execPath]
const bun = [binary('bun')]
const deno = [binary('deno'), 'run', '-A', '-q']
const hosts: readonly (readonly [host: string, runtime: readonly string[], basePath?: string])[] = [
  ['hono-node-server', node],
  ['hono-node-server', bun],
  ['hono-node-server', deno],
  ['hono-bun', bun],
  ['hono-deno', deno],
  ['route-handler', node],
  ['express', node],
  ['fastify', node],
  ['elysia', bun],
  ['srvx', node],
  ['bun', bun],
  ['deno', deno],
  ['express', node, '/api'],
  ['hono-node-server', node, '/api/v1'],
  ['hono-deno', deno, '/api'],
  ['elysia', bun, '/api'],
]

const folder = fileURLToPath(new URL('.', import.meta.url))
const list = '/service/public/profiles?partner=acme&limit='
const invoice = '/invoices/7?partner=acme'
const targets = [`${list}5`, `${list}10`, `${list}20`, '/service/nope', '/service/docs', invoice]

/** @returns How many answers have which fault. */
async function countMixUps({ url, key }: Mounted): Promise<Readonly<Record<string, number>>> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const headers = { 'x-service-partner-key': key, 'accept-encoding': 'gzip', host: 'localhost' }
  const ids = new Set<string>()
  const bodies = new Map<string, string>()
  const counts: Record<string, number> = {}
  const count = (fault: string) => counts[fault] = (counts[fault] ?? 0) + 1

  async function ask(client: number, turn: number): Promise<void> {
    const target = targets[(client + turn) % targets.length]!
    const visit = `${client}-${turn}`
    const sent = request(url + target, { agent, headers: { ...headers, 'x-visit': visit } }).end()
    // A connection may fail again after its response.
    sent.on('error', () => undefined)
    const [response] = await once(sent, 'response') as [IncomingMessage]
    const body = await buffer(response)
    const { statusCode, headers: { 'content-length': length, 'set-cookie': cookies } } = response
    const id = String(response.headers['x-request-id'])
    const text = body.toString('latin1')
    const isProblem = target === '/service/nope'
    const wrong = Object.entries({
      status: statusCode !== (isProblem ? 404 : 200),
      length: length !== undefined && Number(length) !== body.length,
      id: ids.has(id) || isProblem && JSON.parse(text).request_id !== id,
      body: !isProblem && (bodies.get(target) ?? text) !== text ||
        target === invoice && text !== 'Invoice 7 for Acme',
      cookie: cookies?.join() !== `visit=${visit}`,
    }).filter(([, isWrong]) => isWrong)
    for (const [name] of wrong) count(name)
    ids.add(id)
    if (!bodies.has(target)) bodies.set(target, text)
  }

  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let turn = 0; turn < targets.length; turn++) {
      await ask(client, turn).catch(() => count('connection'))
    }
  }))
  agent.destroy()
  return counts
}

t.jobs = 2
for (const [host, [program = '', ...words], basePath = ''] of hosts) {
  t.test(`${host}, ${program.split('/').pop()} ${basePath}`, { buffered: true }, async (t) => {
    const child = spawn(program, [...words, `${folder}host-child.ts`, host, basePath], {
      cwd: folder,
      env: cleanEnv(),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'close')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const [line] = await once(child.stdout, 'data')
    t.strictSame(await countMixUps(JSON.parse(line)), {})
  })
}

t.test('workerd', { buffered: true }, async (t) => {
  const worker = await startWorker('host-worker.ts', folder)
  t.teardown(() => worker.end())
  await (await fetch(`${worker.url}/service/health`)).text()
  const key = await (await fetch(`${worker.url}/key`)).text()
  t.strictSame(await countMixUps({ url: worker.url, key }), {})
})

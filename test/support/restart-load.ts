/**
 * Sends requests to a port of this machine until SIGTERM: half of the clients with a new connection for
 * each request, half on one that they keep. Prints a line once requests are answered and, at the end, a document of how
 * many were, and of what happened to the others. It needs nothing but Node, so that it also runs in a container.
 *
 * Usage: node restart-load.ts PORT
 */
import { Agent, get } from 'node:http'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'

const port = Number(process.argv[2])
const agents = [new Agent({ keepAlive: false }), new Agent({ keepAlive: true })]
const clients = 8
/** Milliseconds between two requests of a client: the servers need the processor, too. */
const pauseMs = 2
const failures: Record<string, number> = {}
let answered = 0
let isEnding = false

function send(agent: Agent): Promise<void> {
  return new Promise((resolve) => {
    const fail = (reason: string) => {
      failures[reason] = (failures[reason] ?? 0) + 1
      resolve()
    }
    const request = get({ host: '127.0.0.1', port, path: '/service/health', agent }, (response) => {
      response.resume().on('error', (error) => fail(error.message)).on('end', () => {
        if (response.statusCode !== 200) return fail(`status ${response.statusCode}`)
        if (answered++ === 0) console.log('answered')
        resolve()
      })
    })
    request.on('error', (error) => fail(error.message))
  })
}

async function sendAll(agent: Agent): Promise<void> {
  while (!isEnding) {
    await send(agent)
    await delay(pauseMs)
  }
}

process.on('SIGTERM', () => isEnding = true)
await Promise.all(Array.from({ length: clients }, (_, index) => sendAll(agents[index % 2]!)))
console.log(JSON.stringify({ answered, failures }))
process.exit()

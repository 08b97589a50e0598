import t from 'tap'
import type { Test } from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import type { LogEvent } from '../../core/log.ts'
import { deployTo } from '../contract/http/deploy.ts'
import { expectProblem } from '../contract/http/expect.ts'
import { inProcess } from '../contract/http/wires.ts'
import { get, type Service } from '../contract/http/service.ts'
import { memory } from '../contract/http/stores.ts'
import { httpContract } from '../contract/http/suites.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

// The matrix runs the complete contract on the fetch handlers of workerd, Bun and Deno.
await t.test('the fetch handler satisfies the contract', async (t) => {
  const suites = [
    'conventions',
    'paths',
    'negotiation',
    'credentials',
    'bodies',
    'caching',
    'failures',
  ] as const
  await httpContract(t, deployTo(memory, inProcess), suites)
})

await t.test('a cursor of another deployment is invalid', async (t) => {
  const deploy = deployTo(memory, inProcess)
  const getPage = (service: Service, more: string) =>
    get(service, `/public/profiles?partner=demo&limit=3${more}`)
  await deploy({}, async (service) => {
    const { page } = (await getPage(service, '')).json
    await deploy({}, async (other) => {
      const response = await getPage(other, `&cursor=${encodeURIComponent(page.next_cursor)}`)
      expectProblem(t, response, 'invalid_cursor', 'the other deployment has another secret')
    })
  })
})

for (const spoil of ['read', 'locked'] as const) {
  await t.test(`a body that is ${spoil} already is an internal error and logged`, (t) =>
    expectHostError(t, spoil))
}

async function expectHostError(t: Test, spoil: 'read' | 'locked'): Promise<void> {
  const store = await openMemoryStore()
  const { keys } = await fillWorld(store)
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, { log: (event) => events.push(event) })
  const { text } = keys['demo full']
  const request = new Request('http://api.example/service/developer/verify-key', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-partner-key': text },
    body: '{"partner":"demo"}',
  })
  // Only a server knows the length of a body.
  const declared = request.clone()
  declared.headers.set('content-length', '18')
  for (const each of [request, declared]) {
    if (spoil === 'read') await each.text()
    else each.body!.getReader()
    t.equal((await api.fetch(each)).status, 500)
    t.match(events.pop()?.error, /^Error: The body has already been read/)
  }
  await api.close()
}

await t.test("a fragment and what is no request are not the client's error", async (t) => {
  const events: LogEvent[] = []
  const api = createPartnerApi({ store: await openMemoryStore() }, { log: (event) => events.push(event) })
  t.equal((await api.fetch(new Request('http://api.example/service/health#a?b'))).status, 200)
  const url = 'http://api.example/'
  const headers = new Headers({ 'content-length': '2' })
  for (const request of [undefined, {}, { url }, { url, headers, method: 'POST' }]) {
    t.equal((await api.fetch(request as Request)).status, 500)
    t.match(events.pop(), { event: 'request', status: 500, error: /^TypeError: / })
  }
})

import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { LogEvent } from '../../core/log.ts'
import { deployTo } from '../contract/http/deploy.ts'
import { inProcess } from '../contract/http/mounts.ts'
import { memory } from '../contract/http/stores.ts'
import { httpContract } from '../contract/http/suites.ts'
import { fillWorld } from '../support/world.ts'

await t.test('the fetch handler keeps to the contract', (t) => httpContract(t, deployTo(memory, inProcess)))

await t.test('a body that somebody has read before the service is a mistake of the server, and its log says so', async (t) => {
  const store = createMemoryStore()
  const { keys } = await fillWorld(store)
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, { log: (event) => events.push(event) })
  const { text } = keys['demo full']
  const request = new Request('http://api.example/service/developer/verify-key', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-partner-key': text },
    body: '{"partner":"demo"}',
  })
  await request.text()
  t.equal((await api.fetch(request)).status, 500)
  t.match(JSON.stringify(events), 'The body has already been read')
  t.notMatch(JSON.stringify(events), text)
  await api.close()
})

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { createClient } from './client.ts'

test('a client records responses that no store failure excuses', async (t) => {
  const server = createServer(({ url, socket }, response) => {
    const status = Number(url?.split('/').at(-1))
    if (status === 0) socket.resetAndDestroy()
    else response.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const client = createClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => client.close())
  for (const status of [200, 201, 401, 409, 429, 503, 500, 502, 0]) await client.send(`/${status}`)
  t.strictSame(client.failures.map(({ status }) => status), [500, 502, 0])
})

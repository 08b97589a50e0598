/** The listener for servers that are not ours, as far as those of the examples do not try it. */
import { once } from 'node:events'
import { connect, createServer, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createListener } from '../../adapters/runtimes/node.ts'
import { json } from './node-stub.ts'

t.test('on HTTP/2, as on HTTP/1.1', async (t) => {
  const listener = createListener({
    async handle(exchange) {
      const { method, target, address } = exchange
      const credentials = [exchange.header('authorization'), exchange.header('x-service-partner-key')]
      const body = method === 'POST' ? Buffer.from(await exchange.body(100)).toString() : undefined
      return json(200, { method, target, address, credentials, body }, method !== 'HEAD')
    },
  })
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => {
    session.destroy()
    server.close()
  })

  async function ask(headers: OutgoingHttpHeaders, body?: string) {
    const stream = session.request({ ':path': '/service/health?x=%2e', ...headers }, { endStream: false })
    let text = ''
    stream.on('data', (chunk) => text += chunk).end(body)
    const [{ ':status': status, 'content-length': length }] = await once(stream, 'response')
    if (!stream.readableEnded) await once(stream, 'end')
    return { status, length: Number(length), said: text === '' ? undefined : JSON.parse(text) }
  }

  const key = { 'x-service-partner-key': ['a', 'b'] }
  const read = await ask(key)
  t.match(read, {
    status: 200,
    said: { method: 'GET', target: '/service/health?x=%2e', address: '127.0.0.1' },
  })
  t.same(read.said.credentials, [null, 'a, b'], 'a key that is there twice')
  const head = await ask({ ':method': 'HEAD', authorization: 'a' })
  t.equal(head.said, undefined)
  t.ok(head.length > 0)
  t.equal((await ask({ ':method': 'POST' }, '{"no":"length"}')).said.body, '{"no":"length"}')
  t.equal((await ask({ ':method': 'POST' })).said.body, '', 'no body is an empty one')
})

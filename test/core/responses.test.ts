/** Responses as `Response`, and the paths in problems. */
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { createResponseConverter } from '../../core/http/fetch.ts'
import { openMemoryStore } from '../support/memory-store.ts'

t.test('a response with a field that the platform forbids is the fallback', (t) => {
  const fallback = { status: 500, headers: ['X-Request-Id', 'r'], body: undefined }
  const respond = createResponseConverter(() => fallback)
  const { status, headers } = respond({ status: 200, headers: ['RateLimit', 'a\r\nb'], body: undefined })
  t.strictSame([status, [...headers]], [500, [['x-request-id', 'r']]])
  t.end()
})

t.test('`instance` is a URI reference for any path, and a fragment in the target is 400', async (t) => {
  const api = createPartnerApi({ store: await openMemoryStore() })
  const send = async (target: string) => {
    const header = () => undefined
    const request = { method: 'GET', target, header, body: () => new Uint8Array(), address: undefined }
    return JSON.parse(String((await api.handle(request)).body))
  }
  const paths = {
    '/a"<b>|c^`{d}[e]\\ f': '/a%22%3Cb%3E%7Cc%5E%60%7Bd%7D%5Be%5D%5C%20f',
    '/%C3%A9%25': '/%C3%A9%25',
    '/é\ud800': '/%C3%A9%EF%BF%BD',
    '//a:b@c:d/e': '//a%3Ab%40c%3Ad/e',
    "/a:b@c;d=e,f+g$h&i!j*k'(l)~": "/a:b@c;d=e,f+g$h&i!j*k'(l)~",
  }
  for (const [path, instance] of Object.entries(paths)) {
    t.match(await send(`${path}?q`), { code: 'route_not_found', instance })
  }
  for (const target of ['/service/health#x', '/service/health?#', '/#', '#']) {
    t.match(await send(target), { code: 'malformed_request', instance: '/' }, target)
  }
})

/** Checks of a mounted service: only behaviour that mounting can break. */
import type { Test } from 'tap'
import { once } from 'node:events'
import { request } from 'node:http'

/** A program that mounts the service. */
export interface Mounted {
  /** Its site; the service is below. */
  readonly url: string
  readonly key: string
}

/**
 * Checks a mounted service on a store with the sample content.
 *
 * @param proxied What the proxy that the program expects would add to each request.
 */
export async function holdsMounted(t: Test, { url, key }: Mounted, proxied: HeadersInit = {}): Promise<void> {
  const headers: Record<string, string> = {
    'x-service-partner-key': key,
    ...Object.fromEntries(new Headers(proxied)),
  }
  const call = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}${path}`, {
      ...init,
      headers: { ...headers, ...Object.fromEntries(new Headers(init.headers)) },
    })
  const send = (path: string, body: object, more: HeadersInit = {}): Promise<Response> =>
    call(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...Object.fromEntries(new Headers(more)) },
      body: JSON.stringify({ partner: 'demo', ...body }),
    })
  const list = '/service/public/profiles?partner=demo&limit=25'

  await t.test('reads and conditional requests', async (t) => {
    const answer = await call(list)
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    t.match(answer.headers.get('x-request-id'), /^req_/)
    t.notOk(answer.headers.get('x-powered-by'), 'no field names the framework')
    const etag = answer.headers.get('etag') ?? ''
    const again = await call(list, { headers: { 'if-none-match': etag } })
    t.equal(again.status, 304)
    t.equal(await again.text(), '')
    const head = await call(list, { method: 'HEAD' })
    t.equal(head.headers.get('content-length'), String(Buffer.byteLength(await answer.text())))
    t.equal(await head.text(), '')
  })

  await t.test('links lead to all pages', async (t) => {
    const slugs: string[] = []
    for (let next: string | undefined = `${url}${list}`; next !== undefined;) {
      const page: Response = await fetch(next, { headers })
      const { data } = await page.json() as { data: { slug: string }[] }
      slugs.push(...data.map(({ slug }) => slug))
      const link = /<(.*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1]
      next = link === undefined ? undefined : new URL(link, next).href
    }
    t.ok(slugs.length > 50)
    t.equal(new Set(slugs).size, slugs.length)
  })

  await t.test('bodies are read up to the limit', async (t) => {
    const verified = await send('/service/developer/verify-key', {})
    t.equal((await verified.json()).data?.valid, true)
    const form = { email: 'jane@example.com', name: 'Jane Doe — déjà' }
    const once = { 'idempotency-key': crypto.randomUUID() }
    const first = await send('/service/partner/signups', form, once)
    t.equal(first.status, 201)
    const second = await send('/service/partner/signups', form, once)
    t.equal(second.headers.get('idempotent-replayed'), 'true')
    t.equal(await second.text(), await first.text())
    const large = await send('/service/developer/verify-key', { filling: 'x'.repeat(40_000) })
    t.equal((await large.json()).code, 'body_too_large')
    const fields = [...Object.entries(headers), ['content-type', 'application/json'] as const]
    const chunked = await statusOf(`${url}/service/developer/verify-key`, fields, 'x'.repeat(40_000))
    t.equal(chunked, 413, 'a body without a length is limited too')
  })

  await t.test('refusals are problems of the service', async (t) => {
    const cases: readonly (readonly [string, RequestInit, string, number])[] = [
      ['/service/nope', {}, 'route_not_found', 404],
      [list, { method: 'DELETE' }, 'method_not_allowed', 405],
      [list, { headers: { 'x-service-partner-key': '' } }, 'key_missing', 401],
      [list, { headers: { authorization: 'Bearer other' } }, 'ambiguous_credentials', 400],
      ['/service/public/profiles?limit=1', {}, 'partner_missing', 400],
    ]
    for (const [path, init, code, status] of cases) {
      const answer = await call(path, init)
      t.equal(answer.status, status, code)
      t.equal(answer.headers.get('content-type'), 'application/problem+json')
      t.equal((await answer.json()).code, code)
    }
    const others = Object.entries(headers).filter(([name]) => name !== 'x-service-partner-key')
    const twice = ['authorization', `Bearer ${key}`] as const
    t.equal(await statusOf(url + list, [...others, twice, twice]), 400, 'the same key twice')
  })

  await t.test('documents are served', async (t) => {
    t.equal((await (await call('/service/openapi.json')).json()).openapi, '3.1.1')
    t.match(await (await call('/service/docs')).text(), /^<!doctype html>/i)
    t.match((await call('/service/docs')).headers.get('content-security-policy'), /./)
  })

  await t.test('the address of the client is known', async (t) => {
    const wrong = key.replace(/.$/, (last) => last === '0' ? '1' : '0')
    const statuses = new Set<number>()
    for (let count = 0; count < 21; count++) {
      statuses.add((await call(list, { headers: { 'x-service-partner-key': wrong } })).status)
    }
    t.same([...statuses], [401, 429], 'too many failures of one address are refused')
    t.equal((await call(list)).status, 200, 'a known key still works')
  })
}

/** Sends what `fetch` cannot: a field twice, and a body without its length. @returns The status. */
async function statusOf(
  url: string,
  fields: readonly (readonly [string, string])[],
  body?: string,
): Promise<number> {
  const headers = ['host', new URL(url).host, ...fields.flat()]
  const sent = request(url, { method: body === undefined ? 'GET' : 'POST', headers })
  if (body !== undefined) sent.write(body)
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  return response.statusCode
}

/** Section 10: no response echoes anything in the format of a key: `send` checks every response. */
import { expectInvalid, expectProblem, invalidFields } from './expect.ts'
import { forge, tamper } from './forgery.ts'
import { get, post, type Service, type Suite, type TestContext } from './service.ts'

export const secrets: readonly Suite[] = [{
  tests: {
    async 'no response echoes text in the format of a key'(t, service) {
      const { text } = service.world.keys['demo full']
      // A valid key, one that was never issued, and one with a wrong checksum.
      for (const key of [text, forge('spk_test', 'Nobody000000'), tamper(text, 58)]) {
        await inQueries(t, service, key)
        await inPaths(t, service, key)
        await inBodies(t, service, key)
        await inFields(t, service, key)
      }
      const response = await get(service, `/public/profiles/${text}?partner=demo&limit=1`)
      expectInvalid(t, response, ['limit', 'slug'], 'a key as a slug beside a wrong parameter')
    },
  },
}]

async function inQueries(t: TestContext, service: Service, key: string): Promise<void> {
  for (const secret of [key, encoded(key)]) {
    expectInvalid(t, await get(service, `/public/plans?partner=${secret}`), ['partner'], 'as the partner')
    for (const name of ['q', 'country', 'industry', 'sort', 'limit', 'cursor']) {
      const response = await get(service, `/public/profiles?partner=demo&${name}=${secret}`)
      expectInvalid(t, response, [name], `as ${name}`)
    }
    const locale = await get(service, `/public/countries?partner=demo&locale=${secret}`)
    expectInvalid(t, locale, ['locale'], 'as locale')
    const several = await get(service, `/public/profiles?partner=demo&country=DE&country=${secret}`)
    expectInvalid(t, several, ['country'], 'as one of several values')
    const name = await get(service, `/public/plans?partner=demo&${secret}=1`)
    expectProblem(t, name, 'invalid_parameter', 'as a parameter name')
    t.equal(invalidFields(name).length, 1, 'one error is reported')
  }
}

async function inPaths(t: TestContext, service: Service, key: string): Promise<void> {
  const { root, send } = service
  const once = encodeURIComponent(encoded(key))
  const start = key.slice(0, 30)
  const end = key.slice(30)
  const wrapped = ['%0A', '%09%20', '%C2%AD', '%E2%80%8B'].map((between) => start + between + end)
  for (const hidden of [once, encodeURIComponent(once), ...wrapped]) {
    const unknown = await send({ target: `/${hidden}` })
    expectProblem(t, unknown, 'route_not_found', 'as a path, wrapped or percent-encoded twice or more', {
      instance: '/',
    })
  }
  for (const slug of [key, encoded(key)]) {
    const detail = await get(service, `/public/profiles/${slug}?partner=demo`)
    expectInvalid(t, detail, ['slug'], 'as a slug')
    const unknown = await send({ target: `/${slug}` })
    expectProblem(t, unknown, 'route_not_found', 'as a path', { instance: '/' })
    const keyless = await send({ target: `${root}/public/profiles/${slug}` })
    expectProblem(t, keyless, 'key_missing', 'as a slug, without another credential')
    const wrong = await send({ method: 'DELETE', target: `${root}/public/profiles/${slug}` })
    expectProblem(t, wrong, 'method_not_allowed', 'as a slug, with a wrong method')
  }
}

async function inBodies(t: TestContext, service: Service, key: string): Promise<void> {
  const partner = await post(service, JSON.stringify({ partner: key }))
  expectProblem(t, partner, 'partner_mismatch', 'as the partner of a body')
  const member = await post(service, JSON.stringify({ partner: 'demo', [key]: 1, [`a/${key}~b`]: key }))
  expectProblem(t, member, 'invalid_body', 'as a member’s name')
  const value = await post(service, JSON.stringify({ partner: 'demo', key }))
  expectProblem(t, value, 'invalid_body', 'as a member’s value', { errors: ['/key'] })
  expectProblem(t, await post(service, key), 'malformed_request', 'as the body')
  expectProblem(
    t,
    await post(service, JSON.stringify(key)),
    'invalid_body',
    'as the JSON document',
    { errors: [''] },
  )
  const twice = `{"partner":"demo","${key}":1,"${key}":2}`
  expectProblem(t, await post(service, twice), 'malformed_request', 'as a duplicate name')
}

async function inFields(t: TestContext, service: Service, key: string): Promise<void> {
  const plans = '/public/plans?partner=demo'
  const version = await get(service, plans, { headers: { 'service-version': key } })
  expectProblem(t, version, 'unknown_version', 'as a version')
  const accept = await get(service, plans, { headers: { accept: key } })
  expectProblem(t, accept, 'not_acceptable', 'as a media type')
  const origin = await get(service, plans, { headers: { origin: `https://${key}.example` } })
  expectProblem(t, origin, 'browser_refused', 'as an origin')
  const type = await post(service, '{}', { headers: { 'content-type': key } })
  expectProblem(t, type, 'unsupported_media_type', 'as a media type of a body')
  const fields = {
    'x-request-id': key,
    'if-none-match': `"${key}"`,
    traceparent: key,
    'user-agent': key,
    from: key,
  }
  t.equal((await get(service, plans, { headers: fields })).status, 200, 'in header fields that are ignored')
}

/** Every second character percent-encoded. */
function encoded(text: string): string {
  return [...text].map((character, index) =>
    index % 2 === 0 ? `%${character.charCodeAt(0).toString(16).padStart(2, '0')}` : character
  ).join('')
}

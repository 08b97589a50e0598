/** Section 10: paths are matched without normalisation; sections 1 and 4: forms of `{slug}`. */
import { expectInvalid, expectProblem, keyedPaths } from './expect.ts'
import { get, type Service, type Suite, type TestContext, withKey } from './service.ts'

export const paths: readonly Suite[] = [{
  tests: {
    'a path that differs from a route in any byte gets 404': inexactPaths,
    'a slug is decoded once': slugDecoding,
    'malformed percent-encoding is refused with 400': malformedEncoding,
    'a target over 8 KiB is refused with 414': targetLength,
  },
}]

async function inexactPaths(t: TestContext, { root, send, quirks, world }: Service): Promise<void> {
  const known = [...keyedPaths(root), `${root}/developer/verify-key`, `${root}/health`]
  const targets = known.flatMap((path) => [
    `${path}/`,
    `${path}//`,
    `/x${path}`,
    path.toUpperCase(),
    path.slice(root.length),
    path.replace('/service/', '/service//'),
    // Percent-encodes the first letter after the service's name, then one in the name.
    `${root}/%${path.charCodeAt(root.length + 1).toString(16)}${path.slice(root.length + 2)}`,
    path.replace('/service/', '/s%65rvice/'),
    path.replace('/service/', '/service%2F'),
    `/${path}`,
    ...(quirks.has('resolves-targets') ? [] : [
      `${path}/x/.`,
      `${path}/x/..`,
      path.replace('/service/', '/service/./'),
      path.replace('/service/', '/service/x/../'),
      path.replace('/service/', '/service/%2e/'),
    ]),
    // Below `profiles/`, these are slugs of missing profiles.
    ...(/universite|recent/.test(path) ? [] : [`${path};v=1`, `${path}%20`, `${path}%00`, `${path}.json`]),
  ])
  const others = ['/', root, `${root}/public`, `${root}/public/profiles/a/b`, '/favicon.ico', '/robots.txt']
  for (const path of [...targets, ...others]) {
    const response = await send({ target: `${path}?partner=demo`, headers: withKey(world.keys['demo full']) })
    expectProblem(t, response, 'route_not_found', path, { instance: path })
  }
}

async function slugDecoding(t: TestContext, service: Service): Promise<void> {
  const detail = (slug: string) => get(service, `/public/profiles/${slug}?partner=demo`)
  t.equal((await detail('universit%65-de-v%61lmorne')).json?.data?.slug, 'universite-de-valmorne', 'decoded')
  const encoded = ['universit%2565-de-valmorne', '%2e%2e%2fplans', 'a%2Fb', '%00', 'a+b']
  // Encoded, `recent` is a slug rather than the list.
  for (const slug of [...encoded, 'UNIVERSITE-DE-VALMORNE', '%72ecent', 'a'.repeat(2000)]) {
    const instance = `${service.root}/public/profiles/${slug}`
    expectProblem(t, await detail(slug), 'profile_not_found', `not a profile: ${slug}`, { instance })
  }
}

async function malformedEncoding(t: TestContext, service: Service): Promise<void> {
  const { send, root } = service
  for (const slug of ['%', '%2', '%zz', 'a%c3', '%ff', '%c0%af', '%ed%a0%80']) {
    const response = await get(service, `/public/profiles/${slug}?partner=demo`)
    expectProblem(t, response, 'malformed_request', `in the path: ${slug}`)
    const search = await get(service, `/public/profiles?partner=demo&q=aa${slug}`)
    expectInvalid(t, search, ['q'], `in a value: ${slug}`)
    expectInvalid(t, await get(service, `/public/plans?partner=${slug}`), ['partner'], `in partner: ${slug}`)
  }
  const keyless = await send({ target: `${root}/public/profiles/%zz` })
  expectProblem(t, keyless, 'malformed_request', 'without a key')
}

async function targetLength(t: TestContext, service: Service): Promise<void> {
  const target = `${service.root}/public/plans?partner=demo&`
  // Empty pieces of a query are ignored, so only the length can be wrong.
  const longest = `/public/plans?partner=demo&${'&'.repeat(8192 - target.length)}`
  t.equal((await get(service, longest)).status, 200, '8,192 bytes')
  expectProblem(t, await get(service, `${longest}&`), 'uri_too_long', '8,193 bytes')
  const unknown = await service.send({ target: `/${'x'.repeat(8192)}` })
  expectProblem(t, unknown, 'uri_too_long', 'the length is checked before the route', { instance: '/' })
}

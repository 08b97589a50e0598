/** Section 10: routing knows no normalisation; sections 1 and 4: what a path's `{slug}` may be. */
import { expectInvalid, expectProblem, keyedPaths } from './expect.ts'
import { type Deploy, get, type Service, type Tester, withKey } from './service.ts'

export async function paths(t: Tester, deploy: Deploy): Promise<void> {
  await deploy({}, async (service) => {
    await t.test('what is nearly a path is none', (t) => nearly(t, service))
    await t.test('a slug is decoded once', (t) => slugs(t, service))
    await t.test('malformed percent-encoding is 400', (t) => malformed(t, service))
    await t.test('a target is at most 8 KiB', (t) => lengths(t, service))
  })
}

async function nearly(t: Tester, service: Service): Promise<void> {
  const { root, send, quirks, world } = service
  const known = [...keyedPaths(service), `${root}/developer/verify-key`, `${root}/health`]
  const targets = known.flatMap((path) => [
    `${path}/`,
    `${path}//`,
    `/x${path}`,
    path.toUpperCase(),
    path.slice(root.length),
    path.replace('/service/', '/service//'),
    // The first letter after the service's name, and one in it, as `%70` and `%65`.
    path.replace(/^\/service\/./, (start) => `/service/%${start.charCodeAt(9).toString(16)}`),
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
    // As a slug it would only be that of no profile.
    ...(/universite|recent/.test(path) ? [] : [`${path};v=1`, `${path}%20`, `${path}%00`, `${path}.json`]),
  ])
  for (const path of targets) {
    for (const target of [path, `${path}?partner=demo`]) {
      const heard = await send({ target, headers: withKey(world.keys['demo full']) })
      expectProblem(t, heard, 'route_not_found', target, { instance: path })
    }
  }
  for (
    const target of [
      '/',
      root,
      `${root}/public`,
      `${root}/public/profiles/a/b`,
      '/favicon.ico',
      '/robots.txt',
    ]
  ) {
    expectProblem(t, await send({ target }), 'route_not_found', target, { instance: target })
  }
}

async function slugs(t: Tester, service: Service): Promise<void> {
  const detail = (slug: string) => get(service, `/public/profiles/${slug}?partner=demo`)
  t.equal((await detail('universit%65-de-v%61lmorne')).json?.data?.slug, 'universite-de-valmorne', 'decoded')
  t.equal((await detail('%72ecent')).status, 404, '`recent`, encoded, is a slug and not the list')
  for (
    const slug of [
      'universit%2565-de-valmorne',
      'UNIVERSITE-DE-VALMORNE',
      '%2e%2e%2fplans',
      'a%2Fb',
      '%00',
      'a+b',
    ]
  ) {
    expectProblem(t, await detail(slug), 'profile_not_found', `not a profile: ${slug}`, {
      instance: `${service.root}/public/profiles/${slug}`,
    })
  }
  const long = 'a'.repeat(2000)
  expectProblem(t, await detail(long), 'profile_not_found', 'a long slug')
}

async function malformed(t: Tester, service: Service): Promise<void> {
  const { send, root } = service
  for (const slug of ['%', '%2', '%zz', 'a%c3', '%ff', '%c0%af', '%ed%a0%80']) {
    const heard = await get(service, `/public/profiles/${slug}?partner=demo`)
    expectProblem(t, heard, 'malformed_request', `in the path: ${slug}`)
    expectInvalid(
      t,
      await get(service, `/public/profiles?partner=demo&q=aa${slug}`),
      ['q'],
      `in a value: ${slug}`,
    )
    expectInvalid(t, await get(service, `/public/plans?partner=${slug}`), ['partner'], `in partner: ${slug}`)
  }
  expectProblem(
    t,
    await send({ target: `${root}/public/profiles/%zz` }),
    'malformed_request',
    'without a key',
  )
}

async function lengths(t: Tester, service: Service): Promise<void> {
  const target = `${service.root}/public/plans?partner=demo&`
  // Empty pieces of a query are passed over, so that nothing but the length can be wrong.
  const longest = `/public/plans?partner=demo&${'&'.repeat(8192 - target.length)}`
  t.equal((await get(service, longest)).status, 200, '8,192 bytes')
  const heard = await get(service, `${longest}&`)
  expectProblem(t, heard, 'uri_too_long', '8,193 bytes')
  const unknown = await service.send({ target: `/${'x'.repeat(8192)}` })
  expectProblem(t, unknown, 'uri_too_long', 'also where there is no route', { instance: '/' })
}

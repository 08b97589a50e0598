/** All HTTP suites by name, and their runner. */
import { administration } from './administration.ts'
import { banner } from './banner.ts'
import { bodies } from './bodies.ts'
import { caching } from './caching.ts'
import { asOneAssertion } from './checks.ts'
import { claims } from './claims.ts'
import { conventions } from './conventions.ts'
import { credentials } from './credentials.ts'
import { directory } from './directory.ts'
import { failures } from './failures.ts'
import { importedKeys } from './imported-keys.ts'
import { limits } from './limits.ts'
import { negotiation } from './negotiation.ts'
import { order } from './order.ts'
import { ownEndpoints } from './own-endpoints.ts'
import { paging } from './paging.ts'
import { paths } from './paths.ts'
import { problems } from './problems.ts'
import { reference } from './reference.ts'
import { reports } from './reports.ts'
import { secrets } from './secrets.ts'
import type { Deploy, Suite, TestContext } from './service.ts'
import { selfService } from './self-service.ts'
import { signups } from './signups.ts'
import { verifyKey } from './verify-key.ts'
import { visibility } from './visibility.ts'

export const SUITES = {
  conventions,
  paths,
  negotiation,
  credentials,
  order,
  secrets,
  'verify-key': verifyKey,
  bodies,
  directory,
  paging,
  reference,
  visibility,
  banner,
  caching,
  limits,
  failures,
  administration,
  'imported-keys': importedKeys,
  'self-service': selfService,
  claims,
  signups,
  reports,
  problems,
  'own-endpoints': ownEndpoints,
} satisfies Readonly<Record<string, readonly Suite[]>>

export type SuiteName = keyof typeof SUITES

/** Suites that depend on the store. */
export const STORE_SUITES: readonly SuiteName[] = [
  'credentials',
  'directory',
  'paging',
  'visibility',
  'banner',
  'caching',
  'limits',
  'failures',
  'administration',
  'imported-keys',
  'signups',
  'reports',
  'own-endpoints',
]

/** Runs suites on deployed services, one for all suites that can share it. @returns The number of checks. */
export async function httpContract(
  t: TestContext,
  deploy: Deploy,
  names: readonly SuiteName[] = Object.keys(SUITES) as SuiteName[],
): Promise<number> {
  const suites = names.flatMap((name) => SUITES[name].map((suite: Suite) => ({ name, ...suite })))
  const groups = Map.groupBy(
    suites,
    ({ settings, changesContent }) => JSON.stringify([settings, changesContent]),
  )
  let checks = 0
  for (const group of groups.values()) {
    await deploy(group[0]!.settings ?? {}, async (service) => {
      for (const { name, tests } of group) {
        for (const [title, body] of Object.entries(tests)) {
          checks += await asOneAssertion(t, `${name}: ${title}`, (t) => body(t, service))
        }
      }
    })
  }
  return checks
}

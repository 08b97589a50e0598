/** The wire: every suite, by name. */
import { administration } from './administration.ts'
import { banner } from './banner.ts'
import { bodies } from './bodies.ts'
import { caching } from './caching.ts'
import { conventions } from './conventions.ts'
import { credentials } from './credentials.ts'
import { directory } from './directory.ts'
import { failures } from './failures.ts'
import { limits } from './limits.ts'
import { negotiation } from './negotiation.ts'
import { order } from './order.ts'
import { paging } from './paging.ts'
import { paths } from './paths.ts'
import { reference } from './reference.ts'
import { reports } from './reports.ts'
import { secrets } from './secrets.ts'
import type { Deploy, Tester } from './service.ts'
import { signups } from './signups.ts'
import { verifyKey } from './verify-key.ts'
import { visibility } from './visibility.ts'

/** What a service is, seen from outside. */
export const SUITES: Readonly<Record<string, (t: Tester, deploy: Deploy) => Promise<void>>> = {
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
  signups,
  reports,
}

/** Runs every suite on services that `deploy` starts. */
export async function httpContract(t: Tester, deploy: Deploy): Promise<void> {
  for (const [name, suite] of Object.entries(SUITES)) await t.test(name, (t) => suite(t, deploy))
}

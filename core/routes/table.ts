import { banner } from './banner.ts'
import { countries, industries, plans } from './lists.ts'
import { apiCatalog, docs, health, openapi } from './meta.ts'
import { directory, profileDetail, recentProfiles } from './profiles.ts'
import { reportActivity, reportSummary } from './reports.ts'
import type { Route } from './route.ts'
import { signups } from './signups.ts'
import { verifyKey } from './verify-key.ts'
import { widget } from './widget.ts'

/** Every endpoint of the service. Of two paths that cover one request, the first counts. */
export const ROUTES: readonly Route[] = [
  verifyKey,
  widget,
  recentProfiles,
  directory,
  profileDetail,
  banner,
  countries,
  industries,
  plans,
  reportSummary,
  reportActivity,
  signups,
  health,
  openapi,
  docs,

  apiCatalog,
]

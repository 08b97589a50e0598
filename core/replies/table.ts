import { array, type GenericSchema, metadata, object, pipe } from 'valibot'
import type { RouteName } from '../routes/route.ts'
import { bannerShape } from './banner.ts'
import { cardShape } from './card.ts'
import { countriesShape, industriesShape, plansShape } from './lists.ts'
import { catalogReply, docsReply, healthReply, openapiReply } from './meta.ts'
import { pageShape } from './page.ts'
import { profileShape } from './profile.ts'
import { receiptShape } from './receipt.ts'
import { activityShape, summaryShape } from './reports.ts'
import { verificationShape } from './verification.ts'
import { widgetShape } from './widget.ts'

const of = (data: GenericSchema): GenericSchema => object({ data })
const rows = (row: GenericSchema, max: number): GenericSchema => pipe(array(row), metadata({ maxItems: max }))

/**
 * The body of every endpoint's success. No answer is made with it: it is what the documents say, and what answers are
 * held against by others than the service. It stands apart from the routes to be loaded with the first document only.
 */
export const REPLIES: Readonly<Record<RouteName, GenericSchema>> = {
  'verify-key': of(verificationShape),
  widget: of(widgetShape),
  'recent-profiles': of(rows(cardShape, 50)),
  profiles: object({ data: rows(cardShape, 100), page: pageShape }),
  profile: of(profileShape),
  banner: of(bannerShape),
  countries: of(countriesShape),
  industries: of(industriesShape),
  plans: of(plansShape),
  'report-summary': of(summaryShape),
  'report-activity': object({ data: rows(activityShape, 100), page: pageShape }),
  'sign-up': of(receiptShape),
  health: healthReply,
  openapi: openapiReply,
  docs: docsReply,
  'api-catalog': catalogReply,
}

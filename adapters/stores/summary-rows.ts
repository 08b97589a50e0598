import type { SummaryCounts } from '../../core/reports/summary.ts'

/** Signups by a value, '' for none, or by a day. */
export type SignupSum = readonly [value: string, signups: number]

/** Requests by an endpoint or a day. */
export type RequestSum = readonly [value: string, requests: number, errors: number]

/** The sums of which a summary is made. */
export interface SummaryRows {
  readonly plans: readonly SignupSum[]
  readonly countries: readonly SignupSum[]
  readonly signupDays: readonly SignupSum[]
  readonly endpoints: readonly RequestSum[]
  readonly requestDays: readonly RequestSum[]
}

/**
 * Which of the dimensions of what is counted of signups tells their days: every signup has a plan or lacks one, so that
 * either has all of them; there are fewer plans.
 */
export const DAYS_OF_SIGNUPS = 'plan'

export function summaryOf(
  { plans, countries, signupDays, endpoints, requestDays }: SummaryRows,
): SummaryCounts {
  return {
    signupsByPlan: plans.map(([plan, signups]) => ({ plan: plan || undefined, signups })),
    signupsByCountry: countries.map(([country, signups]) => ({ country: country || undefined, signups })),
    signupsByDay: signupDays.map(([day, signups]) => ({ day, signups })),
    requestsByEndpoint: endpoints.map(([endpoint, requests, errors]) => ({ endpoint, requests, errors })),
    requestsByDay: requestDays.map(([day, requests, errors]) => ({ day, requests, errors })),
  }
}

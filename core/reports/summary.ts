/** What a period held, counted: only what live keys did. Those that count nothing may be left out. */
export interface SummaryCounts {
  /** By slug of the plan; `undefined`: without one. */
  readonly signupsByPlan: readonly { readonly plan: string | undefined; readonly signups: number }[]
  /** By ISO 3166-1 alpha-2, upper case; `undefined`: without one. */
  readonly signupsByCountry: readonly { readonly country: string | undefined; readonly signups: number }[]
  /** By day, `YYYY-MM-DD` in UTC. */
  readonly signupsByDay: readonly { readonly day: string; readonly signups: number }[]
  /** By name of the route; `errors` are the requests that were answered with 400 or above. */
  readonly requestsByEndpoint: readonly {
    readonly endpoint: string
    readonly requests: number
    readonly errors: number
  }[]
  /** By day, `YYYY-MM-DD` in UTC; `errors` as above. */
  readonly requestsByDay: readonly {
    readonly day: string
    readonly requests: number
    readonly errors: number
  }[]
}

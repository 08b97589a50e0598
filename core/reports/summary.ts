/** What a period held, counted: only what live keys did. Those that count nothing may be left out. */
export interface SummaryCounts {
  readonly signupsByPlan: readonly { readonly plan: string | undefined; readonly signups: number }[]
  readonly signupsByCountry: readonly { readonly country: string | undefined; readonly signups: number }[]
  readonly signupsByDay: readonly { readonly day: string; readonly signups: number }[]
  readonly requestsByEndpoint: readonly {
    readonly endpoint: string
    readonly requests: number
    readonly errors: number
  }[]
  readonly requestsByDay: readonly {
    readonly day: string
    readonly requests: number
    readonly errors: number
  }[]
}

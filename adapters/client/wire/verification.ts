/** Written from the route table by test/client/write-wire.ts. */

/** What a key is and what it may do. */
export interface Verification {
  /** A key that is not valid gets a problem instead. */
  readonly valid: true
  /** Its partner. */
  readonly partner: {
    /** What the partner is addressed by. */
    readonly slug: string
    /** Name to show. */
    readonly name: string
  }
  /** Its key. */
  readonly key: Key
  /** The scopes that the key holds. */
  readonly scopes: readonly ({
    /** A scope that the key holds. */
    readonly scope:
      | 'read:partner-widget'
      | 'read:profiles'
      | 'read:banner'
      | 'read:countries'
      | 'read:industries'
      | 'read:plans'
      | 'create:partner-signups'
      | 'read:partner-reports'
    /** Whether an active module of the partner needs it. */
    readonly in_force: boolean
  })[]
  /** All modules. */
  readonly modules: readonly ({
    /** An integration module. */
    readonly module:
      | 'widget'
      | 'profiles'
      | 'banner'
      | 'countries'
      | 'industries'
      | 'pricing'
      | 'signup'
      | 'reporting'
    /** Whether the partner has activated it. */
    readonly active: boolean
    /** Whether this key can serve it. */
    readonly ready: boolean
    /** The scope that the key would need. */
    readonly missing_scope:
      | 'read:partner-widget'
      | 'read:profiles'
      | 'read:banner'
      | 'read:countries'
      | 'read:industries'
      | 'read:plans'
      | 'create:partner-signups'
      | 'read:partner-reports'
      | null
  })[]
  /** Every endpoint that needs a scope. */
  readonly endpoints: readonly ({
    /** HTTP method. */
    readonly method: 'GET' | 'POST'
    /** Path with `{slug}` for a parameter. */
    readonly path: string
    /** The scope that it needs. */
    readonly scope:
      | 'read:partner-widget'
      | 'read:profiles'
      | 'read:banner'
      | 'read:countries'
      | 'read:industries'
      | 'read:plans'
      | 'create:partner-signups'
      | 'read:partner-reports'
    /** Whether this key may use it now. */
    readonly allowed: boolean
  })[]
  /** The policies that are on. */
  readonly limits: readonly ({
    /** Name of the policy. */
    readonly policy: 'key' | 'signup' | 'verify' | 'authfail'
    /** Requests in a window. */
    readonly quota: number
    /** Length of the window. */
    readonly window_seconds: number
    /** Requests that are left. */
    readonly remaining: number
    /** When the quota is whole again. */
    readonly resets_in_seconds: number
  })[]
  /** Version of the wire. */
  readonly version: string
  /** The instant that all of this is true of. */
  readonly checked_at: string
  /** Within how many milliseconds a change binds. */
  readonly max_staleness_ms: number
  /** Only where the operator has chosen that known keys go on working for a while when the store is out of reach: a change may then bind later. */
  readonly stale_if_error?: {
    /** For how long beyond that. */
    readonly seconds: number
    /** Since when the store has not answered. */
    readonly since: string | null
  } | undefined
}

/** A key without its secret. */
export interface Key {
  /** Public id of the key: the 12 characters after its prefix. */
  readonly id: string
  /** What its owner calls it. */
  readonly name: string
  /** What a test key does is stored as a test. */
  readonly environment: 'live' | 'test'
  /** Its last four characters. */
  readonly hint: string
  /** When it was issued. */
  readonly created_at: string
  /** From when on it is no longer valid. */
  readonly expires_at: string | null
  /** Set while the key is being replaced. */
  readonly rotation: {
    /** Id of the key that replaces it. */
    readonly successor_id: string
    /** Until when this one still works. */
    readonly retires_at: string
  } | null
}

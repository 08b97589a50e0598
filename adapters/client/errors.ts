import type { Problem } from '../../core/wire.ts'

/** The service refused, in its own words (RFC 9457). */
export class PartnerProblem extends Error {
  /** Tells it from other errors, across copies of this package too. */
  override readonly name = 'PartnerProblem'
  /** What went wrong: decide by this. */
  readonly code: Problem['code']
  /** The status of the answer, 400–599. */
  readonly status: number
  /** The document as it came. */
  readonly problem: Problem
  /** Whole seconds after which it may be tried again, where the service said so. */
  readonly retryAfterSeconds: number | undefined

  /** The message names the first parameter or pointer of `errors`. */
  constructor(problem: Problem, retryAfterSeconds?: number) {
    const first = Array.isArray(problem.errors) ? problem.errors[0] : undefined
    // The empty pointer is that of the whole body.
    const place = first?.pointer || (first?.parameter ?? 'the body')
    const text = first?.detail === undefined ? problem.detail : `${problem.detail} ${place}: ${first.detail}.`
    super(`${text} (${problem.code}, ${problem.request_id})`)
    this.code = problem.code
    this.status = problem.status
    this.problem = problem
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** What is known of an answer that is none of the service's. */
export interface ServiceUnreachableErrorOptions extends ErrorOptions {
  /** Its status. */
  readonly status?: number | undefined
  /** What its `Retry-After` said, in whole seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** What answered is not the service, or there was no whole answer at all. */
export class ServiceUnreachableError extends Error {
  /** Tells it from other errors, across copies of this package too. */
  override readonly name = 'ServiceUnreachableError'
  /** The status of the answer; `undefined` when none came, or not all of it. */
  readonly status: number | undefined
  /** Whole seconds after which it may be tried again, where whatever answered said so. */
  readonly retryAfterSeconds: number | undefined

  /** Says in a sentence what came instead, if anything did. */
  constructor(
    message: string,
    { status, retryAfterSeconds, ...options }: ServiceUnreachableErrorOptions = {},
  ) {
    super(message, options)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

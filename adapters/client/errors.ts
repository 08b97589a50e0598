import type { Problem } from '../../core/wire.ts'

/** The service refused the request and said why (RFC 9457). */
export class PartnerProblem extends Error {
  /** Identifies the class across copies of this package. */
  override readonly name = 'PartnerProblem'
  /** The code of the problem: the member to branch on. */
  readonly code: Problem['code']
  /** The status of the response, 400–599. */
  readonly status: number
  /** The problem document. */
  readonly problem: Problem
  /** Whole seconds from `Retry-After`; `undefined` when the service sent none. */
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

/** What is known of a response that is not the service's. */
export interface ServiceUnreachableErrorOptions extends ErrorOptions {
  /** The status of the response. */
  readonly status?: number | undefined
  /** Whole seconds from its `Retry-After`. */
  readonly retryAfterSeconds?: number | undefined
}

/** The service did not respond in full, or something else did. */
export class ServiceUnreachableError extends Error {
  /** Identifies the class across copies of this package. */
  override readonly name = 'ServiceUnreachableError'
  /** The status of the response; `undefined` when none arrived in full. */
  readonly status: number | undefined
  /** Whole seconds from the `Retry-After` of the response. */
  readonly retryAfterSeconds: number | undefined

  /** The message is a sentence. */
  constructor(
    message: string,
    { status, retryAfterSeconds, ...options }: ServiceUnreachableErrorOptions = {},
  ) {
    super(message, options)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

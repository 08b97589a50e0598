import { isObject } from '../../core/lib/json.ts'
import type { Problem } from '../../core/wire.ts'
import { attachResponse, type ResponseInfo } from './response.ts'

/** A call failed. */
export class PartnerApiError extends Error {
  /** The status of the response; `undefined` when none arrived in full. */
  readonly status: number | undefined
  /** Whole seconds from the `Retry-After` of the response. */
  readonly retryAfterSeconds: number | undefined
  /** Status and headers of the response, if one arrived in full; not enumerable. */
  declare readonly response: ResponseInfo | undefined

  /** The message is a sentence. */
  constructor(message: string, response?: ResponseInfo, options?: ErrorOptions) {
    super(message, options)
    this.status = response?.status
    this.retryAfterSeconds = response?.retryAfterSeconds
    attachResponse(this, response as ResponseInfo)
  }
}

/** The service refused the request and said why (RFC 9457). */
export class PartnerProblem extends PartnerApiError {
  /** Identifies the class across copies of this package. */
  override readonly name = 'PartnerProblem'
  /** The code of the problem: the member to branch on. */
  readonly code: Problem['code']
  /** The status of the response, 400–599. */
  declare readonly status: number
  /** The problem document. */
  readonly problem: Problem

  /** The message names every parameter and pointer of `errors`. */
  constructor(problem: Problem, response?: ResponseInfo) {
    // The empty pointer is that of the whole body.
    const errors = [problem.errors ?? []].flat().filter(isObject)
      // A value with members may have a `toString` that is not a function.
      .map(({ pointer, parameter = 'the body', detail }) =>
        [pointer || parameter, detail].filter((part) => Object(part) !== part).join(': ')
      )
    const text = errors.length > 0 ? `${problem.detail} ${errors.join('; ')}.` : problem.detail
    super(`${text} (${problem.code}, ${problem.request_id})`, response)
    this.code = problem.code
    this.status = problem.status
    this.problem = problem
  }
}

/** The service did not respond in full, or something else did. */
export class ServiceUnreachableError extends PartnerApiError {
  /** Identifies the class across copies of this package. */
  override readonly name = 'ServiceUnreachableError'
}

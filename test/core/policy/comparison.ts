/** Sends the requests of the proof and compares the responses with those of the contract. */
import type { PartnerApi } from '../../../core/api.ts'
import type { HttpRequest, HttpResponse } from '../../../core/http/message.ts'
import type { Endpoint, ExpectedResponse } from './oracle.ts'

/** Counts comparisons with the oracle. */
export interface Tally {
  decisions: number
  mismatches: number
  /** The first few mismatches. */
  readonly examples: string[]
  /** @param difference Describes a mismatch; called only for one. */
  compare(agrees: boolean, difference: () => string): void
}

/** @param stopAtFirst Whether the first mismatch ends the proof, by throwing. */
export function createTally(stopAtFirst = false): Tally {
  return {
    decisions: 0,
    mismatches: 0,
    examples: [],
    compare(agrees, difference) {
      this.decisions++
      if (agrees) return
      this.mismatches++
      if (this.examples.length < 10) this.examples.push(difference())
      if (stopAtFirst) throw new Error(this.examples[0])
    },
  }
}

/** A request of the proof. */
export interface Request {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body?: string
  readonly address: string | undefined
}

/** The compared parts of a response, and the bytes that must be equal for different causes. */
interface ReadResponse {
  readonly status: number
  readonly code: string | undefined
  readonly challenge: string | undefined
  readonly requiredScope: string | undefined
  readonly requiredModule: string | undefined
  /** The response without its request id. */
  readonly bytes: string
}

const encoder = new TextEncoder()
/** Sends a request. With the memory store, the response is synchronous. */
export function send(api: PartnerApi, request: Request): HttpResponse {
  const httpRequest: HttpRequest = {
    method: request.method,
    target: request.target,
    header: (name) => request.headers[name],
    body: () => encoder.encode(request.body ?? ''),
    address: request.address,
  }
  const response = api.handle(httpRequest)
  if (response instanceof Promise) throw new Error('The service responded asynchronously.')
  return response
}

function readResponse({ status, headers, body }: HttpResponse): ReadResponse {
  const text = Buffer.from(body ?? '').toString()
  const fields: [string, string][] = []
  for (let index = 0; index < headers.length; index += 2) fields.push([headers[index]!, headers[index + 1]!])
  const field = (name: string) => fields.find(([known]) => known.toLowerCase() === name)?.[1]
  const isProblem = field('content-type') === 'application/problem+json'
  const problem: Record<string, string | undefined> = isProblem ? JSON.parse(text) : {}
  const id = field('x-request-id')
  return {
    status,
    code: isProblem ? problem['code'] : status < 400 ? undefined : 'no problem body',
    challenge: field('www-authenticate'),
    requiredScope: problem['required_scope'],
    requiredModule: problem['required_module'],
    bytes: status < 400 ? '' : `${JSON.stringify([status, fields])}${text}`.replaceAll(id ?? 'none', 'req'),
  }
}

/** Sends requests and compares each response with the expected one. */
export interface Comparison {
  check(request: Request, verdict: ExpectedResponse, endpoint: Endpoint): void
}

/**
 * @param secrets Texts that no response may contain.
 */
export function createComparison(
  api: PartnerApi,
  tally: Tally,
  secrets: readonly string[],
): Comparison {
  const first = new Map<string, string>()

  /** Some responses have the same bytes for every cause (section 2), per endpoint: `instance` is its path. */
  function equalsFirst(code: string, endpoint: Endpoint, method: string, bytes: string): boolean {
    if (code !== 'key_invalid' && code !== 'partner_mismatch') return true
    const place = `${code} ${method} ${endpoint.path}`
    const known = first.get(place)
    if (known === undefined) first.set(place, bytes)
    return known === undefined || known === bytes
  }

  return {
    check(request, verdict, endpoint) {
      const response = send(api, request)
      const seen = readResponse(response)
      const agrees = seen.status === verdict.status && seen.code === verdict.code &&
        seen.challenge === verdict.challenge && seen.requiredScope === verdict.requiredScope &&
        seen.requiredModule === verdict.requiredModule
      tally.compare(
        agrees && !secrets.some((secret) => seen.bytes.includes(secret)) &&
          equalsFirst(seen.code ?? '', endpoint, request.method, seen.bytes),
        () => JSON.stringify({ request, contract: verdict, service: seen }),
      )
    },
  }
}

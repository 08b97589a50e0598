/** How the proof asks the service and compares its answer with the contract's. */
import type { PartnerApi } from '../../../core/api.ts'
import type { HttpRequest, HttpResponse } from '../../../core/http/message.ts'
import type { Endpoint, Verdict } from './oracle.ts'

/** Counts what was compared with the oracle. */
export interface Tally {
  decisions: number
  mismatches: number
  /** The first few mismatches. */
  readonly examples: string[]
  /** @param difference What differed, asked for only if something did. */
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

/** A request in the proof's words. */
export interface Request {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body?: string
  readonly address: string | undefined
}

/** What of an answer is compared, and what of it must be the same for different causes. */
interface Seen {
  readonly status: number
  readonly code: string | undefined
  readonly challenge: string | undefined
  readonly requiredScope: string | undefined
  readonly requiredModule: string | undefined
  /** The whole answer but for the request id. */
  readonly bytes: string
}

const encoder = new TextEncoder()
/** Asks, and the memory store answers at once. */
export function send(api: PartnerApi, request: Request): HttpResponse {
  const exchange: HttpRequest = {
    method: request.method,
    target: request.target,
    header: (name) => request.headers[name],
    body: () => encoder.encode(request.body ?? ''),
    address: request.address,
  }
  const answer = api.handle(exchange)
  if (answer instanceof Promise) throw new Error('The service waited, and nothing had to be waited for.')
  return answer
}

function see({ status, headers, body }: HttpResponse): Seen {
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

/** Asks requests and compares each answer with its verdict. */
export interface Questioner {
  ask(request: Request, verdict: Verdict, endpoint: Endpoint): void
}

/**
 * @param secrets Texts that no answer may contain.
 * @param alike The codes whose answers are the same bytes for every cause (section 2). They are for one endpoint:
 * `instance` is its path.
 */
export function createQuestioner(
  api: PartnerApi,
  tally: Tally,
  secrets: readonly string[],
  alike: readonly string[] = ['key_invalid', 'partner_mismatch'],
): Questioner {
  const first = new Map<string, string>()

  function same(code: string, endpoint: Endpoint, method: string, bytes: string): boolean {
    if (!alike.includes(code)) return true
    const place = `${code} ${method} ${endpoint.path}`
    const known = first.get(place)
    if (known === undefined) first.set(place, bytes)
    return known === undefined || known === bytes
  }

  return {
    ask(request, verdict, endpoint) {
      const answer = send(api, request)
      const seen = see(answer)
      const agrees = seen.status === verdict.status && seen.code === verdict.code &&
        seen.challenge === verdict.challenge && seen.requiredScope === verdict.requiredScope &&
        seen.requiredModule === verdict.requiredModule
      tally.compare(
        agrees && !secrets.some((secret) => seen.bytes.includes(secret)) &&
          same(seen.code ?? '', endpoint, request.method, seen.bytes),
        () => JSON.stringify({ request, contract: verdict, service: seen }),
      )
    },
  }
}

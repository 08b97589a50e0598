import type { PartnerApi } from '../../../core/api.ts'
import { CACHED_TARGET, exchangeFor } from '../data/tenant.ts'

/** The page of 20 profiles as the service answers it, for peers to have ready. */
export interface ReadyAnswer {
  readonly text: string
  readonly bytes: Uint8Array
  /** The fields that every answer has alike; names and values. */
  readonly headers: Readonly<Record<string, string>>
}

/** What is another one in each answer, and what a server writes by itself. */
const changing = new Set(['X-Request-Id', 'RateLimit', 'Content-Length'])

/** Asks the service for the page once. */
export async function readyAnswer(service: PartnerApi, key: string): Promise<ReadyAnswer> {
  const { status, headers, body } = await service.handle(exchangeFor(CACHED_TARGET, key))
  if (status !== 200 || body === undefined) throw new Error(`The page was answered with ${status}.`)
  const pairs = Array.from(
    { length: headers.length / 2 },
    (_, index) => [headers[2 * index]!, headers[2 * index + 1]!] as const,
  )
  return {
    text: Buffer.from(body).toString(),
    bytes: Buffer.from(body),
    headers: Object.fromEntries(pairs.filter(([name]) => !changing.has(name))),
  }
}

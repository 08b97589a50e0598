import {
  createPartnerClient,
  type PartnerClient,
  type PartnerClientOptions,
} from '../../adapters/client/mod.ts'
import { mintKey } from '../../core/keys/format.ts'

/** A key that no service knows. */
export const key: string = mintKey('spk', 'live').text

/** A client of a service that is nowhere. */
export function makeClient(more: Partial<PartnerClientOptions> = {}): PartnerClient {
  return createPartnerClient({ url: 'https://api.example', key, partner: 'demo', ...more })
}

/** A client whose service answers as it is told, and is silent from then on, and what that was asked. */
export function scripted(answers: (() => Response)[], more: Partial<PartnerClientOptions> = {}): {
  readonly asked: readonly Request[]
  readonly client: PartnerClient
} {
  const asked: Request[] = []
  const client = makeClient({
    ...more,
    fetch(request) {
      asked.push(request)
      const answer = answers.shift()
      return answer === undefined ? Promise.reject(new TypeError('fetch failed')) : Promise.resolve(answer())
    },
  })
  return { asked, client }
}

/** What a service refuses with. */
export function problem(code: string, status: number, headers: Record<string, string> = {}): Response {
  const said = { code, status, detail: 'So it is.', request_id: 'req_1' }
  return new Response(JSON.stringify(said), { status, headers })
}

/** An empty list. */
export const good = (): Response => new Response(JSON.stringify({ data: [] }))

/** Reads a list to its end. */
export async function gather<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = []
  for await (const row of rows) gathered.push(row)
  return gathered
}

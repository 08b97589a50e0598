/** The service with a slow store, and what every host of `hosts.test.ts` does to its responses. */
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import type { PartnerApi } from '../../core/api.ts'
import type { PeerInfo } from '../../core/http/fetch.ts'
import { delay, type MaybePromise } from '../../core/lib/promise.ts'
import type { ProtectedHandler } from '../../core/protect.ts'
import { createService, fill, issueKey } from '../bench/tenant.ts'

/** Milliseconds of each call of the store. */
const storeTakesMs = 3

export async function createSlowApi(
  basePath = '',
): Promise<{ readonly api: PartnerApi; readonly key: string }> {
  const store = createMemoryStore()
  await fill(store, 30)
  const key = await issueKey(store)
  const storeCall = async <T>(_: string, call: () => T | Promise<T>): Promise<T> => {
    await delay(storeTakesMs)
    return call()
  }
  return { api: createService(store, { observers: [{ storeCall }], basePath }), key }
}

/** What a router knows of a request for an invoice. */
export interface InvoiceContext extends PeerInfo {
  /** Next.js has it in a promise. */
  readonly params: MaybePromise<{ readonly id: string }>
}

/** A route of the host's router. The body is another one for each id. */
export function protectInvoice(api: PartnerApi): ProtectedHandler<InvoiceContext> {
  return api.protect(
    {
      name: 'invoice',
      method: 'GET',
      path: '/invoices/:id',
      scope: 'read:profiles',
      summary: 'Get an invoice',
    },
    async (_request, { partner }, { params }: InvoiceContext) => {
      const { id } = await params
      await delay(storeTakesMs)
      return new Response(`Invoice ${id} for ${partner.name}`)
    },
  )
}

/** A middleware that waits, and appends to the response it got what the client sent. */
export async function setCookie(request: Request, response: Response): Promise<Response> {
  await delay(1)
  response.headers.append('Set-Cookie', `visit=${request.headers.get('x-visit')}`)
  return response
}

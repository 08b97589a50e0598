/** The service with a slow store, and what every host of `hosts.test.ts` does to its responses. */
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import { directoryOf } from '../../core/content/custom-directory.ts'
import type { PeerInfo } from '../../core/http/fetch.ts'
import { delay, type MaybePromise } from '../../core/lib/promise.ts'
import type { ProtectedHandler } from '../../core/protect.ts'
import { ENOUGH } from '../bench/tenant.ts'
import { createOneKeyStore } from '../support/one-key-store.ts'

const directory = directoryOf(
  Array.from({ length: 30 }, (_, index) => ({
    slug: `profile-${index}`,
    name: `Profile ${index}`,
    headline: `Number ${index}`,
    country: 'DE',
    industry: { slug: 'travel', name: 'Travel' },
    publishedAt: index,
  })),
)

/** Milliseconds of each call of the store. */
const storeTakesMs = 3

export function createSlowApi(basePath = ''): { readonly api: PartnerApi; readonly key: string } {
  const { store, key } = createOneKeyStore()
  const storeCall = async <T>(_: string, call: () => T | Promise<T>): Promise<T> => {
    await delay(storeTakesMs)
    return call()
  }
  const limits = { key: ENOUGH }
  return {
    api: createPartnerApi({ store, directory }, { observers: [{ storeCall }], basePath, limits }),
    key,
  }
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

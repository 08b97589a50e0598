/** The service with a slow store, and what every host of `hosts.test.ts` does to its responses. */
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import type { PartnerApi } from '../../core/api.ts'
import { delay } from '../../core/lib/promise.ts'
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

/** A middleware that waits, and appends to the response it got what the client sent. */
export async function setCookie(request: Request, response: Response): Promise<Response> {
  await delay(1)
  response.headers.append('Set-Cookie', `visit=${request.headers.get('x-visit')}`)
  return response
}

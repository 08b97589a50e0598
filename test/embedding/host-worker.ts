import { createWorker, type WorkerContext } from '../../adapters/runtimes/workers.ts'
import { createSlowApi, protectInvoice, setCookie } from './host-api.ts'

let key = ''
let invoice: ReturnType<typeof protectInvoice>
const worker = createWorker(() => {
  const created = createSlowApi()
  key = created.key
  invoice = protectInvoice(created.api)
  return created.api
})

export default {
  async fetch(request: Request, env: unknown, context: WorkerContext): Promise<Response> {
    if (request.url.endsWith('/key')) return new Response(key)
    const id = /\/invoices\/(\w+)/.exec(request.url)?.[1]
    const responding = id === undefined
      ? worker.fetch(request, env, context)
      : invoice(request, { params: { id } })
    return setCookie(request, await responding)
  },
}

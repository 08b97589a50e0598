import { createWorker, type WorkerContext } from '../../adapters/runtimes/workers.ts'
import { createSlowApi, setCookie } from './host-api.ts'

let key = ''
const worker = createWorker(async () => {
  const created = await createSlowApi()
  key = created.key
  return created.api
})

export default {
  async fetch(request: Request, env: unknown, context: WorkerContext): Promise<Response> {
    const response = await worker.fetch(request, env, context)
    return request.url.endsWith('/key') ? new Response(key) : setCookie(request, response)
  },
}

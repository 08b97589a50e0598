import { FetchExchange } from '../../core/http/fetch.ts'
import { Problem } from '../../core/http/problem.ts'
import type { MaybePromise } from '../../core/ports.ts'

/** A request that a server of the runtime hands over as a `Request`. */
export class ServedExchange extends FetchExchange {
  readonly #timeoutMs: number

  /** @param timeoutMs Milliseconds in which a body must have arrived once it is asked for; 0 for no limit. */
  constructor(request: Request, timeoutMs: number) {
    super(request)
    this.#timeoutMs = timeoutMs
  }

  override body(maxBytes: number): MaybePromise<Uint8Array> {
    const body = super.body(maxBytes)
    return body instanceof Promise ? this.#inTime(body) : body
  }

  async #inTime(body: Promise<Uint8Array>): Promise<Uint8Array> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_resolve, reject) => {
      if (this.#timeoutMs === 0) return
      timer = setTimeout(() => reject(new Problem('request_timeout')), this.#timeoutMs)
    })
    try {
      return await Promise.race([body, late])
    } finally {
      clearTimeout(timer)
    }
  }
}

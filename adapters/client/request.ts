/** A request that carries the key, for whatever sends it. */
export interface KeyedRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly body?: string
}

/** What a request is about. */
export interface Asked {
  /** Path and query below the address of the deployment. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Sent as JSON, with POST. */
  readonly body?: unknown
}

/**
 * Makes requests to a deployment.
 *
 * @param url Its address. What stands in it besides origin and path is left out: credentials and queries are not sent.
 * @param serviceName The first part of its paths, which its header of keys is named after.
 * @throws {TypeError} for a `url` that is none of `http:` or `https:`.
 */
export function createRequests(
  url: string | URL,
  serviceName: string,
  key: string,
): (asked: Asked) => KeyedRequest {
  // What `new URL` throws repeats it, and a key may stand in its place. `localhost:8787` is a URL, too: of another scheme.
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('url must be an http:// or https:// address, such as https://api.example.')
  }
  const { origin, pathname } = parsed
  const base = origin + pathname.replace(/(?<!\/)\/+$/, '')
  const keyed = {
    [`x-${serviceName}-partner-key`]: key,
    accept: 'application/json, application/problem+json',
  }

  return ({ target, headers, body }) => ({
    url: base + target,
    ...(body === undefined ? { method: 'GET', headers: { ...keyed, ...headers } } : {
      method: 'POST',
      headers: { ...keyed, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }),
  })
}

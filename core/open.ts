import { after } from './after.ts'
import { askedOf, type Call, queryOf } from './call.ts'
import type { Answer } from './http/exchange.ts'
import { prefersGzip } from './http/accept.ts'
import { readParameters } from './http/parameters.ts'
import type { Representation, Representing } from './http/representation.ts'
import type { MaybePromise } from './ports.ts'
import type { DocumentRoute, HandlerPorts, OpenRoute } from './routes/route.ts'

/**
 * Serves what needs no key: small replies, and documents, which are made once and kept as bytes.
 *
 * @returns The second half of the pipeline for these routes.
 */
export function createOpenDoor(
  handlers: HandlerPorts,
  representation: Representing,
): (call: Call, route: OpenRoute | DocumentRoute) => MaybePromise<Answer> {
  const plain = once((route) =>
    after(
      route.publish(handlers),
      (publication) => representation.publish(publication, route.contentType),
    )
  )
  const compressed = once((route) => after(plain(route), representation.compress))

  return (call, route) => {
    readParameters(queryOf(call), {}, undefined)
    if ('contentType' in route) {
      const document = prefersGzip(call.exchange.header('accept-encoding')) ? compressed : plain
      // Without the stem: what is compressed must not be sent as text.
      return after(document(route), (made) => ({
        ...representation.present(made, askedOf(call), []),
        stem: undefined,
      }))
    }
    return after(route.handle(handlers), (reply) => representation.tell(reply, 200, askedOf(call), []))
  }
}

/** Makes each document once. One that could not be made is made anew for the next request. */
function once(
  make: (route: DocumentRoute) => MaybePromise<Representation>,
): (route: DocumentRoute) => MaybePromise<Representation> {
  const kept = new Map<DocumentRoute, MaybePromise<Representation>>()
  return (route) => {
    const known = kept.get(route)
    if (known !== undefined) return known
    const made = make(route)
    kept.set(route, made)
    if (made instanceof Promise) made.then((ready) => kept.set(route, ready), () => kept.delete(route))
    return made
  }
}

import { after } from './after.ts'
import { askedOf, type Call, queryOf } from './call.ts'
import type { Answer } from './http/exchange.ts'
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
  const kept = new Map<DocumentRoute, MaybePromise<Representation>>()

  function publish(route: DocumentRoute): MaybePromise<Representation> {
    const known = kept.get(route)
    if (known !== undefined) return known
    const made = after(
      route.publish(handlers),
      (publication) => representation.publish(publication, route.contentType),
    )
    kept.set(route, made)
    // What could not be made is tried again for the next who asks.
    if (made instanceof Promise) made.then((ready) => kept.set(route, ready), () => kept.delete(route))
    return made
  }

  return (call, route) => {
    readParameters(queryOf(call), {}, undefined)
    if ('contentType' in route) {
      return after(publish(route), (made) => representation.present(made, askedOf(call), []))
    }
    return after(route.handle(handlers), (reply) => representation.tell(reply, 200, askedOf(call), []))
  }
}

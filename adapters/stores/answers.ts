/** When the methods of a port answer. Generic methods would lose their parameters here. */

/** A port, or a part of one, of a store that has its answers at hand. */
export type Synchronous<Port> = {
  readonly [Name in keyof Port]-?: Port[Name] extends ((...query: infer Query) => infer Answer) | undefined
    ? (...query: Query) => Awaited<Answer>
    : Port[Name]
}

/** The same of a store that is elsewhere. */
export type Asynchronous<Port> = {
  readonly [Name in keyof Port]-?: Port[Name] extends ((...query: infer Query) => infer Answer) | undefined
    ? (...query: Query) => Promise<Awaited<Answer>>
    : Port[Name]
}

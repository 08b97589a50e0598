/** Everything on the wire that carries the service's own name. */
export interface ServiceNames {
  /** Path segment and realm. */
  readonly name: string
  /** As answers write it: `X-Service-Partner-Key`. */
  readonly keyHeader: string
  /** As answers write it: `Service-Version`. */
  readonly versionHeader: string
}

/**
 * @param name Lower-case letters, digits and `-`, a letter first: `service` by default.
 * @throws {RangeError} for a name of another form.
 */
export function nameService(name: string): ServiceNames {
  if (!/^[a-z][a-z0-9-]*$/.test(name)) {
    throw new RangeError(
      `The service can't be named ${
        JSON.stringify(name)
      }: use lower-case letters, digits and "-", a letter first.`,
    )
  }
  const title = name.split('-').map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('-')
  return { name, keyHeader: `X-${title}-Partner-Key`, versionHeader: `${title}-Version` }
}
